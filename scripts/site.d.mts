export function assembleSite(page: string, into: string): void;
