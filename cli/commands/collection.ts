import { findBoundedLog, presentLog } from '../../src/features/changes/log-bound.js';
import { dropCollection } from '../../src/features/collections/drop-collection.js';
import { writeExpire } from '../../src/features/collections/fields/expire.js';
import { hasRule, NAMED_MARKS, type Field } from '../../src/features/collections/fields/field.js';
import { writeUnique } from '../../src/features/collections/fields/unique.js';
import { readIndexSizes } from '../../src/features/collections/indexes/document-indexes.js';
import { suggestedIndexes } from '../../src/features/collections/indexes/unindexed-reads.js';
import { listCollections, presentCollection } from '../../src/features/collections/list-collections.js';
import { ACCESS_SENTENCES, RULE_NAMES, SERVER_ONLY } from '../../src/features/collections/rules/collection-rules.js';
import { USERS } from '../../src/features/collections/users-collection.js';
import { chooseCollection, collectionArgument } from '../ask/choose-collection.js';
import { defineProjectCommand, projectOption } from '../ask/choose-project.js';
import { presentType } from '../ask/field-spec.js';
import { argument, defineCommand, choice, flag, option } from '../shell/command.js';
import type { TextStyle, Result } from '../view/output.js';
import { presentBytes, presentList } from '../view/present.js';
import type { Collection, RlsMode } from '../../src/features/collections/collection.js';
import { completeRules } from '../../src/features/collections/rules/check-rules.js';
import { setRls, planRules, setRules } from '../../src/features/collections/change-collection.js';
import { askForRls } from '../ask/ask-for-collection.js';
import { givenRules, RULE_OPTIONS } from '../ask/options.js';
import { UsageError } from '../view/exit.js';

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
function presentCollectionAccess({ name, access, rls }: Shown): string {
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
function presentRules({ rules }: Shown): string {
  if (!rules) return 'no rules';
  const lines = RULE_NAMES.flatMap((name) => (rules[name] === undefined ? [] : `  ${name}: ${rules[name]}`));
  return ['rules', ...lines].join('\n');
}

function presentMarks(field: Field): string {
  return (['required', 'unique', 'stamp', ...NAMED_MARKS] as const)
    .filter((mark) => field[mark])
    .map((mark) => (hasRule(mark) ? `${mark}: ${field[mark]}` : mark))
    .join(', ');
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
    `\nReads examined more than 10,000 documents because no index fits: ${suggested.join(' · ')}`,
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
  details: 'Also deletes the documents in the trash.',
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

const rls = defineCommand({
  details: [
    'public-read: everyone reads, signed-in users write their own documents. private: signed-in users see and write only their own. The secret key has full access. --mode also opens a server-only collection; --off does not.',
    'Instead of a mode, give rules. A rule is anyone, nobody, or conditions on the caller and the document, joined by "and" and "or":',
    '  user · doc.owner = user.id · user.id in doc.members · doc.visibility = "public" · "staff" in user.groups',
    'Rules that you leave out stay as they are; in a collection without rules they become nobody. Rules do not apply to the secret key.',
  ].join('\n'),
  examples: [
    'bsvc collection rls posts --project shop --mode public-read',
    'bsvc collection rls notes --project shop --mode private --owner-field userId',
    'bsvc collection rls posts --project shop --off',
    "bsvc collection rls lists --project shop --read 'user.id in doc.members' --create 'doc.owner = user.id' --update 'user.id in doc.members' --delete 'doc.owner = user.id'",
    'bsvc collection rls invites --project shop --server-only',
    'bsvc collection rls lists --project shop --public',
  ],
  audited: true,
  destroys: 'at times',
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    mode: choice<RlsMode>('--mode <mode>', 'row-level security', ['public-read', 'private']),
    ownerField: option(
      '--owner-field <field>',
      'field that holds the owner’s user id (default: the present one, or userId)',
    ),
    off: flag('--off', 'disable row-level security: every key reads, the secret key writes'),
    ...RULE_OPTIONS,
    serverOnly: flag('--server-only', 'the secret key only'),
    public: flag('--public', 'no rules: every key reads, the secret key writes'),
  },
  async run(context, input) {
    const given = givenRules(input);
    const ways = [
      input.mode !== undefined || input.ownerField !== undefined,
      input.off,
      Object.keys(given).length > 0,
      input.serverOnly,
      input.public,
    ].filter(Boolean).length;
    const bare = ways === 0 && context.ask.possible;
    if (!bare && (ways !== 1 || (input.ownerField !== undefined && input.mode === undefined))) {
      throw new UsageError(
        'Give one of --mode public-read|private, --off, rules such as --read user, --server-only, or --public.',
      );
    }
    const { app, project, collection } = await chooseCollection(context, input);
    if (bare || input.mode || input.off) {
      const { mode, ownerField = collection.rls?.ownerField ?? 'userId' } = input;
      const rls = bare ? await askForRls(context) : mode ? { mode, ownerField } : null;
      return presentAccess(await setRls(app, project._id, collection.name, rls));
    }
    const whole = input.serverOnly ? SERVER_ONLY : completeRules({ ...collection.rules, ...given });
    const rules = input.public ? null : whole;
    const { loosened } = await planRules(app, collection, rules);
    const agreed = loosened.length > 0;
    if (agreed) {
      const what = `Loosens "${collection.name}" of project ${project.name}: ${loosened.join('; ')}.`;
      await context.confirm({ what, name: project.name, reversible: true });
    }
    return presentAccess(await setRules(app, project._id, collection.name, rules, { agreed }));
  },
});

function presentAccess(collection: Collection): Result {
  const shown = presentCollection(collection);
  const access = shown.access === 'rules' ? presentRules(shown) : presentCollectionAccess(shown);
  return { json: shown, quiet: shown.id, text: () => `${shown.name}: ${access}` };
}

export default { list, show, drop, rls };
