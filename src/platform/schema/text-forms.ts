import { fullFormats } from 'ajv-formats/dist/formats.js';

export const MAX_ADDRESS_CHARACTERS = 320;

const EMAIL = fullFormats.email as RegExp;

/** A bare mail address such as `ann@example.com`: one line, no name, no list. */
export function isMailAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_CHARACTERS && EMAIL.test(text);
}

/** A text without line breaks, in whatever spelling, and other control characters: it can stand in a header. */
export function isOneLine(text: string): boolean {
  return !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text);
}
