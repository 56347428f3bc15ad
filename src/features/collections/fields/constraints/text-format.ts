import type { TextFormat } from './constraint.js';

export const MAX_EMAIL_CHARACTERS = 254;
const MAX_LOCAL_CHARACTERS = 64;
const MAX_URL_CHARACTERS = 2048;

// ASCII only, so that no two addresses look alike; a domain of another script has its xn-- form.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const WEB = /^https?:\/\//i;

/** True for a text of the form of an e-mail address, in letters of either case. */
export function isEmailAddress(text: string): boolean {
  if (text.length > MAX_EMAIL_CHARACTERS) return false;
  const at = text.lastIndexOf('@');
  return at > 0 && at <= MAX_LOCAL_CHARACTERS && LOCAL.test(text.slice(0, at)) && DOMAIN.test(text.slice(at + 1));
}

function isWebAddress(text: string): boolean {
  return text.length <= MAX_URL_CHARACTERS && WEB.test(text) && !/\s/.test(text) && URL.canParse(text);
}

/** The form that a text may be asked for, as a test and in words. `keyword` is what JSON Schema calls it. */
export const FORMAT_RULES: Readonly<
  Record<TextFormat, { test: (text: string) => boolean; about: string; keyword: string }>
> = {
  email: { test: isEmailAddress, about: 'an e-mail address', keyword: 'email' },
  url: { test: isWebAddress, about: 'a web address (http or https)', keyword: 'uri' },
  uuid: { test: (text) => UUID.test(text), about: 'a UUID', keyword: 'uuid' },
};
