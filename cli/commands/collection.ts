import { findBoundedLog, presentLog } from '../../src/features/changes/log-bound.js';
import { dropCollection } from '../../src/features/collections/drop-collection.js';
import { writeExpire, readExpire } from '../../src/features/collections/fields/expire.js';
import { hasRule, NAMED_MARKS, type Field } from '../../src/features/collections/fields/field.js';
import { writeUnique } from '../../src/features/collections/fields/unique.js';
import { readIndexSizes } from '../../src/features/collections/indexes/document-indexes.js';
import { suggestedIndexes } from '../../src/features/collections/indexes/unindexed-reads.js';
import { listCollections, presentCollection } from '../../src/features/collections/collection-store.js';
import { ACCESS_SENTENCES, RULE_NAMES, SERVER_ONLY } from '../../src/features/collections/rules/collection-rules.js';
import { USERS, findExposedFields } from '../../src/features/collections/users-collection.js';
import {
  chooseCollection,
  collectionArgument,
  defineProjectCommand,
  projectOption,
  chooseProject,
} from '../ask/choose.js';
import { presentType, parseFieldSpec } from '../ask/field-spec.js';
import { argument, defineCommand, choice, flag, option, list } from '../shell/command.js';
import type { TextStyle, Result } from '../view/output.js';
import { presentBytes, presentList, presentFound, countOf } from '../view/present.js';
import type { Collection, RlsMode, AccessWord } from '../../src/features/collections/collection.js';
import { completeRules } from '../../src/features/collections/rules/check-rules.js';
import { setRls, planRules, setRules, requireSoundChange } from '../../src/features/collections/change-collection.js';
import { askForRls, askForAccess, askForCollection, askForEdit } from '../ask/ask-for-collection.js';
import { givenRules, RULE_OPTIONS, readUniqueOption } from '../ask/options.js';
import { UsageError, refused } from '../view/exit.js';
import { addCollection } from '../../src/features/collections/add-collection.js';
import type { CollectionDeclaration } from '../../src/features/collections/schema/collection-declaration.js';
import { readCollectionFile, readStructuredFile } from '../formats/read-declaration-file.js';
import { findServiceAddress } from '../shell/service-address.js';
import { lifetime, presentDuration } from '../../src/config/setting-readers.js';
import { setChanges } from '../../src/features/changes/set-changes.js';
import {
  applyEdit,
  editCollection,
  type CollectionEdit,
  renameCollection,
} from '../../src/features/collections/edit-collection.js';
import { requireNoViolations } from '../../src/features/collections/stored-violations.js';
import { checkStoredDocuments } from '../../src/features/documents/validation/check-stored-documents.js';

type Shown = ReturnType<typeof presentCollection>;

/** A collection for a person: one line about its rules, then its fields. */
function presentCollectionText(view: TextStyle, collection: Shown): string {
  const head = `${view.paint.bold(collection.name)} (${collection.id}), ${collection.mode}, ${presentCollectionAccess(collection)}`;
  const together = collection.uniques ? `\nunique together: ${collection.uniques.map(writeUnique).join(' · ')}` : '';
  const expire = collection.expire ? `\nexpire: ${writeExpire(collection.expire)}` : '';
  const indexes =
    (collection.indexes.length > 0 ? `\nindexed: ${collection.indexes.join(' · ')}` : '') + together + expire;
  const rules = collection.access === 'rules' ? `\n${presentRules(collection)}` : '';
  if (collection.fields.length === 0) {
    return `${head}${indexes}${rules}\nNo declared fields: any JSON object is stored.`;
  }
  const table = view.table(
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
function presentAccessText({ name, access }: Shown): string {
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

const listAll = defineProjectCommand({
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
      text: (view) =>
        presentCollectionText(view, shown) +
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

const add = defineCommand({
  details: [
    'A field is written name:Type[!][&][=default]: ! required, & unique, @nocase case-insensitive, =user.id@fixed the user who created it. Types: String, Number, Boolean, Date, Object, Array, Ref.',
    'Ref(users) references a collection; Object{a:String!,b:Number} and Array(String) nest.',
    'Access: the secret key only (--server-only, the default), --public (every key reads, the secret key writes), --rls public-read|private, or rules (bsvc collection rls).',
    'At a terminal, it asks for missing fields and access.',
  ].join('\n'),
  examples: [
    "bsvc collection add posts --project shop --public --field title:String! --field views:Number=0 --field 'author:Ref(users)'",
    "bsvc collection add notes --project shop --field 'meta:Object{lang:String,tags:Array(String)}' --rls private --owner-field userId",
    'bsvc collection add events --project shop --flexible --if-not-exists',
  ],
  audited: true,
  parameters: {
    name: argument('name', 'name of the collection'),
    project: projectOption,
    fields: list('--field <spec>', 'declare a field (repeatable)', parseFieldSpec),
    schema: option('--schema <file>', 'JSON or YAML file with the fields'),
    flexible: flag('--flexible', 'store any JSON object, without validation'),
    rls: choice<RlsMode>('--rls <mode>', 'row-level security', ['public-read', 'private']),
    ownerField: option('--owner-field <field>', 'field that holds the owner’s user id (default: userId)'),
    public: flag('--public', 'every key reads, the secret key writes'),
    serverOnly: flag('--server-only', 'readable and writable by the secret key only (the default)'),
    indexes: list(
      '--index <fields>',
      'index for lists: a field, several as country,-population, or place:2dsphere for points (repeatable)',
    ),
    uniques: list(
      '--unique <fields>',
      'fields that are unique together, as board,user or staff,at where status=booked (repeatable)',
      readUniqueOption,
    ),
    expire: option(
      '--expire <field>',
      'time after which documents are deleted: expiresAt, "createdAt after 30d" or "expiresAt permanently"',
      readExpire,
    ),
    ifNotExists: flag('--if-not-exists', 'do nothing if one of that name exists'),
  },
  async run(context, input) {
    if (input.ownerField !== undefined && !input.rls) throw new UsageError('--owner-field needs --rls <mode>.');
    if ([input.public, input.serverOnly, input.rls !== undefined].filter(Boolean).length > 1) {
      throw new UsageError('Give only one of --public, --rls <mode> and --server-only.');
    }
    if (input.schema !== undefined && input.fields.length > 0) {
      throw new UsageError('Give the fields either by --field or by --schema, not both.');
    }
    const fromFile =
      input.schema === undefined
        ? null
        : readCollectionFile(await readStructuredFile(context, input.schema), input.name, input.schema);
    const access: AccessWord | undefined = input.public ? 'public' : input.serverOnly ? 'server-only' : input.rls;
    const words: CollectionDeclaration = {
      name: input.name,
      fields: input.fields,
      ...fromFile,
      ...(input.flexible && { mode: 'flexible' }),
      ...(access && { access, ownerField: input.ownerField, rls: undefined, rules: undefined }),
      ...(input.indexes.length > 0 && { indexes: input.indexes }),
      ...(input.uniques.length > 0 && { uniques: input.uniques }),
      ...(input.expire && { expire: input.expire }),
    };
    const bare = !input.flexible && !fromFile && input.fields.length === 0;
    if (bare && !context.ask.possible) {
      throw new UsageError(
        'No fields given: declare one with --field title:String!, or store any JSON object with --flexible.',
      );
    }
    const { app, project } = await chooseProject(context, input.project);
    const declared = bare ? await askForCollection(context, words) : words;
    const isSaid = [declared.access, declared.rls, declared.rules].some((given) => given !== undefined);
    const isAsked = !isSaid && context.ask.possible && !context.out.json;
    const chosen = isAsked ? await askForAccess(context) : {};
    const asked = { ...declared, ...chosen, ifNotExists: input.ifNotExists };
    const { collection, created, unmet } = await addCollection(app, project, asked);
    const shown = presentCollection(collection);
    return {
      json: { collection: shown, created, ...(!created && { unmet }) },
      quiet: shown.id,
      text: async (view) => {
        if (!created) {
          const change = `Change it with "bsvc collection edit ${shown.name}".`;
          return presentFound(`Collection ${shown.name}`, unmet, change);
        }
        return [
          `Registered in project ${project.name}:`,
          presentCollectionText(view, shown),
          presentAccessText(shown),
          `Try: curl -H 'x-api-key: <${keyFor(shown.access)} key>' ${await findServiceAddress(app)}/api/data/${shown.name}`,
        ].join('\n');
      },
    };
  },
});

/** The key that reads the collection without a signed-in user. */
function keyFor(access: AccessWord | 'rules'): string {
  return access === 'public' || access === 'public-read' ? 'publishable' : 'secret';
}

const edit = defineCommand({
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
        text: (view) =>
          report.violations === 0
            ? report.checked === 0
              ? 'No stored document violates the new settings.'
              : `All of ${countOf(report.checked, 'document')} would fit.`
            : `${report.violations} of ${report.checked} documents violate the new settings:\n${view.table(
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

export default { add, list: listAll, show, edit, rls, drop };
