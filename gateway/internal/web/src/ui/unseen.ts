// Characters that change how the text around them looks, or cannot be seen.

/** Controls and terminal escapes, what reorders text, blanks that are no spaces, and variation selectors that select nothing. */
export const unseen = /(?![\t\n])(?:(?![\ufe00-\ufe0f])[\p{Cc}\p{DI}\u2028\u2029\u2800\ufff9-\ufffb]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f])/u;

const each = new RegExp(unseen, "gu");

/** A text for places that take nothing but text: a sign stands for what is unseen. */
export const plain = (text: string): string => text.replace(each, "\ufffd");
