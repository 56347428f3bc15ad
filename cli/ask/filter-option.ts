import { RESERVED_KEYS } from '../../src/features/documents/query/parse-list-query.js';
import { list, type CommandParameter } from '../shell/command.js';
import { UsageError } from '../view/exit.js';

/**
 * The repeatable `--filter` of a command. Parameters of the request other than conditions are refused: those of lists,
 * and `own`; `options` are those of them that the command has as options.
 */
export function filterOption(
  options: readonly string[],
  own: ReadonlySet<string> = new Set(),
): CommandParameter<[name: string, value: string][]> {
  return list('--filter <field=value>', 'condition (repeatable, all must hold)', (text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new Error('it must be field=value, or field_operator=value such as views_gt=10.');
    const name = text.slice(0, at);
    if (RESERVED_KEYS.has(name) || own.has(name)) {
      const instead = options.includes(name) ? `: there is --${name.replaceAll('_', '-')}` : '';
      throw new UsageError(`--filter ${name}=… is no condition${instead}.`);
    }
    return [name, text.slice(at + 1)] as [string, string];
  });
}
