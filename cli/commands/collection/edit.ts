import { lifetime, presentDuration } from '../../../src/config/setting-readers.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { readExpire } from '../../../src/features/collections/fields/expire.js';
import type { Collection } from '../../../src/features/collections/collection.js';
import {
  applyEdit,
  editCollection,
  type CollectionEdit,
  renameCollection,
} from '../../../src/features/collections/edit-collection.js';
import { requireSoundChange } from '../../../src/features/collections/change-collection.js';
import { requireNoViolations } from '../../../src/features/collections/stored-violations.js';
import { presentCollection } from '../../../src/features/collections/list-collections.js';
import { findExposedFields } from '../../../src/features/collections/users-collection.js';
import { checkStoredDocuments } from '../../../src/features/documents/validation/check-stored-documents.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { askForEdit } from '../../ask/ask-for-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { choice, defineCommand, flag, list, option } from '../../shell/command.js';
import { UsageError, refused } from '../../view/exit.js';
import type { Result } from '../../view/output.js';
import { countOf } from '../../view/present.js';
import { readUniqueOption } from '../../ask/options.js';
import { parseFieldSpec } from '../../ask/field-spec.js';
import { presentCollectionText } from '../collection.js';

export default defineCommand({
  details: [
    'Without options, at a terminal, it asks for the change. Stored documents do not change: an invalid one is rejected at its next write. A constraint that stored documents violate is rejected and names ten of them, unless you add --for-new-writes. --check reports all such documents, those in the trash too, and changes nothing.',
    '--name renames the collection: documents stay where they are, and clients must use the new name from then on.',
    '--changes keeps the change log, so that subscribers catch up after they were away. With the embedded database it is on by default. With MongoDB it costs two more writes per change and is off. After --changes off, subscribers start over.',
  ].join('\n'),
  examples: [
    'bsvc collection edit posts --project shop --add-field subtitle:String',
    "bsvc collection edit posts --project shop --set-field 'title:String!&' --check",
    "bsvc collection edit posts --project shop --set-field 'status:String{enum:draft|public}'",
    'bsvc collection edit posts --project shop --drop-field subtitle',
    'bsvc collection edit posts --project shop --changes 7d',
    'bsvc collection edit posts --project shop --name articles',
  ],
  audited: ({ check }) => !check,
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    name: option('--name <name>', 'new name'),
    addFields: list('--add-field <spec>', 'declare another field (repeatable)', parseFieldSpec),
    setFields: list('--set-field <spec>', 'change the declaration of a field (repeatable)', parseFieldSpec),
    dropFields: list('--drop-field <name>', 'stop declaring a field (repeatable)'),
    mode: choice('--mode <mode>', 'whether undeclared fields may be stored', ['enforced', 'flexible']),
    indexes: list('--index <fields>', 'replace the indexes (repeatable)'),
    uniques: list('--unique <fields>', 'replace the fields that are unique together (repeatable)', readUniqueOption),
    expire: option(
      '--expire <field>',
      'time after which documents are deleted: expiresAt, "createdAt after 30d", "expiresAt permanently", or off',
      readExpire,
    ),
    changes: option(
      '--changes <on|off|duration>',
      'keep the change log, and for how long (default: BSVC_KEEP)',
      readChanges,
    ),
    forNewWrites: flag('--for-new-writes', 'apply new constraints to future writes only'),
    check: flag('--check', 'only report stored documents that would be invalid'),
  },
  async run(context, input) {
    const words: CollectionEdit = {
      addFields: input.addFields,
      setFields: input.setFields,
      dropFields: input.dropFields,
      mode: input.mode,
      ...(input.indexes.length > 0 && { indexes: input.indexes }),
      ...(input.uniques.length > 0 && { uniques: input.uniques }),
      ...(input.expire !== undefined && { expire: input.expire }),
    };
    const { expire, ...lists } = words;
    const bare = expire === undefined && Object.values(lists).every((part) => part === undefined || part.length === 0);
    const { name, changes } = input;
    const isAlone = bare && !input.check && (name === undefined || changes === undefined);
    if ((name ?? changes) !== undefined && !isAlone) {
      throw new UsageError('--name and --changes go with no other change.');
    }
    if (bare && (name ?? changes) === undefined && !context.ask.possible) {
      throw new UsageError(
        'Nothing to change: give --name, --add-field, --set-field, --drop-field, --mode, --index, --unique, --expire or --changes.',
      );
    }
    const { app, project, collection } = await chooseCollection(context, input);
    if (changes) return presentLogged(await setChanges(app, project._id, collection.name, changes));
    if (name !== undefined) {
      const renamed = presentCollection(await renameCollection(app, project._id, collection.name, name));
      return { json: renamed, quiet: renamed.id, text: () => `Collection ${collection.name} is now ${renamed.name}.` };
    }
    const edit = bare ? await askForEdit(context, collection) : words;
    if (input.check) {
      const changed = { ...collection, ...applyEdit(collection, edit) };
      await requireSoundChange(app, collection, changed);
      const report = await checkStoredDocuments(app, changed, context.stop);
      // What the report does not look at: references, indexes.
      if (report.violations === 0) {
        await requireNoViolations(app, collection, changed, { forNewWrites: input.forNewWrites });
      }
      return {
        json: report,
        quiet: report.violations,
        ...(report.violations > 0 && {
          failure: refused(
            'DOCUMENTS_INVALID',
            `${report.violations} of ${report.checked} documents violate the new settings. Nothing was changed.`,
          ),
        }),
        text: async (view) =>
          report.violations === 0
            ? report.checked === 0
              ? 'No stored document violates the new settings.'
              : `All of ${countOf(report.checked, 'document')} would fit.`
            : `${report.violations} of ${report.checked} documents violate the new settings:\n${await view.table(
                ['id', 'why'],
                report.examples.map(({ id, message }) => [id, message]),
                { prose: true },
              )}`,
      };
    }
    const edited = await editCollection(app, project._id, collection.name, edit, {
      forNewWrites: input.forNewWrites,
    });
    const named = new Set([...(edit.addFields ?? []), ...(edit.setFields ?? [])].map(({ name }) => name));
    for (const name of findExposedFields(edited).filter((field) => named.has(field))) {
      context.out.warn(
        `Warning: every user can set "${name}" on itself. If it grants something, protect it: --set-field ${name}:…@protected`,
      );
    }
    const changed = presentCollection(edited);
    return { json: changed, quiet: changed.id, text: (view) => presentCollectionText(view, changed) };
  },
});

function readChanges(text: string): { on: boolean; keepMs?: number } {
  return text === 'on' || text === 'off' ? { on: text === 'on' } : { on: true, keepMs: lifetime(text) };
}

function presentLogged(collection: Collection): Result {
  const shown = presentCollection(collection);
  const { on, keepMs } = shown.changes ?? {};
  const kept = on === false || keepMs === undefined ? '' : `, kept for ${presentDuration(keepMs)}`;
  return { json: shown, quiet: shown.id, text: () => `${shown.name}: changes ${on === false ? 'off' : 'on'}${kept}.` };
}
