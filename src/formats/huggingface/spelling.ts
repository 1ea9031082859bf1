// The two spellings of a key: snake_case in Hugging Face's files, camelCase in this library.

/** rope_theta → ropeTheta; a name without underscores stays as it is. */
export function toCamelCase(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** ropeTheta → rope_theta */
export function toSnakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
