import type { Collection } from '../../../src/features/collections/collection.js';
import { UsageError } from '../../view/exit.js';

const AS_TEXT: ReadonlySet<string> = new Set(['String', 'Date', 'Ref']);

/**
 * `name=value` words as fields of a user: texts as they stand, everything else as JSON. The schema decides if they fit.
 */
export function readFields(words: readonly string[], { fields }: Pick<Collection, 'fields'>): Record<string, unknown> {
  return Object.fromEntries(
    words.map((word): [string, unknown] => {
      const [, name, text] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
      if (name === undefined || text === undefined) throw new UsageError(`--field takes name=value, not "${word}".`);
      if (name === 'password') {
        throw new UsageError('A password is never an argument: use --password-stdin or --password-env.');
      }
      if (name === 'email') throw new UsageError('The address is given by --email.');
      const declared = fields.find((field) => field.name === name);
      // One that is not declared is refused by its name, whatever it holds.
      return [name, !declared || AS_TEXT.has(declared.type) ? text : readJson(name, text)];
    }),
  );
}

function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`The value of ${name} must be JSON, for example ${name}=7 or ${name}='{"a":true}'.`);
  }
}
