import { findBoundedLog, presentLog } from '../../src/features/changes/log-bound.js';
import { dropCollection } from '../../src/features/collections/drop-collection.js';
import { writeExpire } from '../../src/features/collections/fields/expire.js';
import type { Field } from '../../src/features/collections/fields/field.js';
import { writeUnique } from '../../src/features/collections/fields/unique.js';
import { readIndexSizes } from '../../src/features/collections/indexes/index-sizes.js';
import { suggestedIndexes } from '../../src/features/collections/indexes/unindexed-reads.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import { presentCollection } from '../../src/features/collections/present-collection.js';
import { ACCESS_SENTENCES, RULE_NAMES } from '../../src/features/collections/rules/collection-rules.js';
import { USERS } from '../../src/features/collections/users-collection.js';
import { chooseCollection, collectionArgument } from '../ask/choose-collection.js';
import { defineProjectCommand, projectOption } from '../ask/choose-project.js';
import { presentType } from '../ask/present-field-spec.js';
import { argument, defineCommand } from '../shell/command.js';
import type { TextStyle } from '../view/output.js';
import { presentBytes } from '../view/present-amount.js';
import { presentList } from '../view/present-list.js';

type Shown = ReturnType<typeof presentCollection>;

/** A collection for a person: one line about its rules, then its fields. */
export async function presentCollectionText(view: TextStyle, collection: Shown): Promise<string> {
  const head = `${view.paint.bold(collection.name)} (${collection.id}), ${collection.mode}, ${presentCollectionAccess(collection)}`;
  const together = collection.uniques ? `\nunique together: ${collection.uniques.map(writeUnique).join(' · ')}` : '';
  const expire = collection.expire ? `\nexpire: ${writeExpire(collection.expire)}` : '';
  const indexes =
    (collection.indexes.length > 0 ? `\nindexed: ${collection.indexes.join(' · ')}` : '') + together + expire;
  const rules = collection.access === 'rules' ? `\n${presentRules(collection)}` : '';
  if (collection.fields.length === 0) {
    return `${head}${indexes}${rules}\nNo declared fields: any JSON object is stored.`;
  }
  const table = await view.table(
    ['field', 'type', 'rules', 'default'],
    collection.fields.map((field) => [
      field.name,
      presentType(field),
      presentMarks(field),
      field.default === undefined ? '' : JSON.stringify(field.default),
    ]),
  );
  return `${head}${indexes}${rules}\n${table}`;
}

/** Who may access the collection, short. */
export function presentCollectionAccess({ name, access, rls }: Shown): string {
  if (name === USERS) return 'reached through /api/userAuth only';
  if (access === 'rules') return 'access by rules';
  return 'mode' in rls ? `${access}, owner field ${rls.ownerField}` : access;
}

/** Who may access the collection, in words, and the commands that change it. */
export function presentAccessText({ name, access }: Shown): string {
  const others = [
    access === 'public' ? `bsvc collection rls ${name} --server-only` : `bsvc collection rls ${name} --public`,
    ...(access === 'server-only' ? [`bsvc collection rls ${name} --mode private`] : []),
    ...(access === 'public' || access === 'server-only' ? [] : [`bsvc collection rls ${name} --server-only`]),
  ];
  return `Access: ${access}: ${ACCESS_SENTENCES[access]}\nTo change it: ${others.join(', or ')}`;
}

/** The rules, one a line. */
export function presentRules({ rules }: Shown): string {
  if (!rules) return 'no rules';
  const lines = RULE_NAMES.flatMap((name) => (rules[name] === undefined ? [] : `  ${name}: ${rules[name]}`));
  return ['rules', ...lines].join('\n');
}

function presentMarks(field: Field): string {
  const flags = (
    ['required', 'unique', 'nocase', 'stamp', 'fixed', 'hook', 'hidden', 'protected', 'public'] as const
  ).filter((mark) => field[mark]);
  const rules = (['read', 'write'] as const).flatMap((mark) =>
    field[mark] === undefined ? [] : [`${mark}: ${field[mark]}`],
  );
  return [...flags, ...rules].join(', ');
}

const list = defineProjectCommand({
  examples: ['bsvc collection list --project shop', 'BSVC_PROJECT=shop bsvc collection list --json'],
  async run(context, { app, project }) {
    const collections = (await listCollections(app, project._id)).map(presentCollection);
    return presentList(collections, {
      name: ({ name }) => name,
      empty: 'No collections yet. Register one with: bsvc collection add <name> --field title:String!',
      head: ['name', 'mode', 'fields', 'access', 'id'],
      row: (each) => [each.name, each.mode, each.fields.length, presentCollectionAccess(each), each.id],
    });
  },
});

/** `edit` replaces the indexes, so that the present ones are named too. */
function presentSuggestions({ name, indexes }: { name: string; indexes: string[] }, suggested: string[]): string {
  if (suggested.length === 0) return '';
  const options = [...indexes, ...suggested].map((index) => `--index ${index}`);
  return [
    `\nReads looked at more than 10,000 documents for want of an index: ${suggested.join(' · ')}`,
    `Add it with: bsvc collection edit ${name} ${options.join(' ')}`,
  ].join('\n');
}

function presentLogText(log: ReturnType<typeof presentLog>): string {
  if (!log) return '';
  const reach = log.since === null ? '' : `, back to ${log.since}`;
  return `\nlog of changes: ${presentBytes(log.bytes)} of at most ${presentBytes(log.maxBytes)}${reach}`;
}

/** The largest first; of the index of `_id`, which is the documents themselves on an embedded store, nothing. */
function presentSizes(sizes: Readonly<Record<string, number>>): string {
  const lines = Object.entries(sizes)
    .filter(([, bytes]) => bytes > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, bytes]) => `\n  ${name}: ${presentBytes(bytes)}`);
  return lines.length === 0 ? '' : `\nstored indexes:${lines.join('')}`;
}

const show = defineCommand({
  examples: ['bsvc collection show posts --project shop', 'bsvc collection show posts --project shop --json'],
  parameters: { collection: collectionArgument, project: projectOption },
  async run(context, input) {
    const { app, project, collection } = await chooseCollection(context, input);
    const log = presentLog(await findBoundedLog(app, project, collection));
    const shown = { ...presentCollection(collection), log };
    const suggested = suggestedIndexes(collection);
    const indexBytes = await readIndexSizes(app, collection);
    return {
      json: { ...shown, indexBytes, ...(suggested.length > 0 && { suggestedIndexes: suggested }) },
      quiet: shown.id,
      text: async (view) =>
        (await presentCollectionText(view, shown)) +
        presentLogText(log) +
        presentSizes(indexBytes) +
        presentSuggestions(shown, suggested),
    };
  },
});

const drop = defineProjectCommand({
  details: 'Removes the documents, those in the trash too.',
  examples: ['bsvc collection drop posts --project shop', 'bsvc collection drop posts --project shop --yes'],
  audited: true,
  destroys: ({ project, collection }) => ({
    what: `Drops ${collection} of project ${project.name} with all its documents.`,
    name: collection,
  }),
  parameters: { collection: argument('collection', 'name of the collection') },
  async run(_context, { app, project, collection }) {
    const dropped = presentCollection(await dropCollection(app, project._id, collection));
    return { json: dropped, quiet: dropped.id, text: () => `Dropped ${dropped.name} with all its documents.` };
  },
});

export default { list, show, drop };
