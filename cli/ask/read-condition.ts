import { RESERVED_KEYS } from '../../src/features/documents/query/parse-list-query.js';
import { UsageError } from '../shell/exit.js';

/** Parameters of a list other than conditions: they have options of their own here, or none. */
const OPTIONS = ['sort', 'fields', 'populate', 'limit', 'page', 'count', 'include_deleted'];

/** The name and value of a `--filter`. */
export function readCondition(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 1) throw new Error('it must be field=value, or field_operator=value such as views_gt=10.');
  const name = text.slice(0, at);
  if (RESERVED_KEYS.has(name)) {
    const instead = OPTIONS.includes(name) ? `: there is --${name.replaceAll('_', '-')}` : '';
    throw new UsageError(`--filter ${name}=… is no condition${instead}.`);
  }
  return [name, text.slice(at + 1)];
}
