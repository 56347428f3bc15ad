import { isEmailAddress } from '../../../../platform/schema/text-forms.js';
import type { TextFormat } from './constraint.js';

const MAX_URL_CHARACTERS = 2048;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const WEB = /^https?:\/\//i;

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
