import type { Refusal } from '../api.js';

/** A mistake in a rule, with the text around it. */
export interface Mistake {
  rule: string;
  /** The whole text that it was found in. */
  text: string;
  message: string;
  /** The position of its character. */
  at: number;
  before: string;
  marked: string;
  after: string;
}

/** Characters that are shown before and after a mistake. */
const AROUND = 40;

/** The mistake that a refusal or a finding places in one of the rules; null where it is about something else. */
export function findMistake(
  { code, details = [] }: Pick<Refusal, 'code'> & Partial<Pick<Refusal, 'details'>>,
  texts: Readonly<Record<string, string>>,
): Mistake | null {
  const [detail] = details;
  const rule = detail?.field.replace(/^rules\./, '') ?? '';
  const text = texts[rule];
  const at = Number(detail?.rule);
  if (code !== 'INVALID_RULE' || text === undefined || !Number.isInteger(at)) return null;
  const message = detail!.message.replace(/^\w+: /, '').replace(/ \(at character \d+\)$/, '');
  const from = Math.max(0, at - AROUND);
  return {
    rule,
    text,
    message,
    at,
    before: (from > 0 ? '…' : '') + text.slice(from, at),
    // At its end something is missing.
    marked: text.slice(at, at + 1) || ' ',
    after: text.slice(at + 1, at + AROUND) + (text.length > at + AROUND ? '…' : ''),
  };
}
