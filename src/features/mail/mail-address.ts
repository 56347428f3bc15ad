import { isEmailAddress, isOneLine } from '../../platform/schema/text-forms.js';

/** A sender: a bare address, or `Name <address>` on one line. */
export function isSender(value: unknown): value is string {
  if (typeof value !== 'string' || !isOneLine(value)) return false;
  const named = /^[^<>",;]{1,100}<([^<>]+)>$/.exec(value);
  return isEmailAddress(named?.[1] ?? value);
}
