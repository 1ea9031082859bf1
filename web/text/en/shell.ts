// The frame's words in English.

export const shell = {
  title: "Longhand lab",
  motto: "How far can a Transformer really read?",
  skip: "Skip to the page",
  pages: "Pages",
  language: "Language",
  theme: "Theme",
  light: "Light",
  dark: "Dark",
  system: "System",
  offline: "Everything here is computed on this machine by Longhand's own library. Nothing leaves it.",
  failed: "This page ran into an error",
  /** Between a name and what is said of it. */
  colon: ": ",
  opening: "Opening the page …",
} as const;
