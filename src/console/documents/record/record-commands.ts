import { below } from '../../api-paths.js';
import type { DocumentsPath } from '../../collection.js';
import { ofProject, quote, type CommandLine } from '../../parts/commands.js';
import type { EditedRecord } from './use-record.js';

/** What the record's buttons do, as commands and requests. */
export function recordCommands(base: DocumentsPath, { stored, fields, change, isSame }: EditedRecord): CommandLine[] {
  const collection = decodeURIComponent(base.split('/').at(-2)!);
  if (!stored) {
    const cli = `bsvc data insert ${collection} ${quote(JSON.stringify(fields))} ${ofProject()}`;
    return [{ cli, method: 'POST', path: base, body: fields }];
  }
  const { _id: id } = stored;
  const words = (command: string): string => `bsvc data ${command} ${collection} ${id} ${ofProject()}`;
  const path = below(base, '/{document}', { document: id });
  const known = String(stored.updatedAt);
  const act: CommandLine = stored.isDeleted
    ? { name: 'Take back', cli: words('recover'), method: 'POST', path: below(path, '/recover') }
    : { name: 'Move to the trash', cli: words('trash'), method: 'DELETE', path };
  if (isSame) return [{ name: 'Show', cli: words('get'), path }, act];
  const json = quote(JSON.stringify(change));
  return [
    {
      name: 'Save',
      cli: `bsvc data change ${collection} ${id} ${json} --if-match ${known} ${ofProject()}`,
      method: 'PATCH',
      path,
      body: change,
      headers: { 'if-match': `"${known}"` },
    },
    act,
  ];
}
