/** The byte order mark that some editors put before a text. It loads nothing: settings are read before anything else. */

/** A text without the mark. JSON and the names of variables must not begin with one. */
export const withoutMark = (text: string): string => text.replace(/^\uFEFF/, "");
