import { addCollection } from '../../../src/features/collections/add-collection.js';
import { readExpire } from '../../../src/features/collections/fields/expire.js';
import type { AccessWord, RlsMode } from '../../../src/features/collections/collection.js';
import type { CollectionDeclaration } from '../../../src/features/collections/schema/collection-declaration.js';
import { presentCollection } from '../../../src/features/collections/list-collections.js';
import { askForAccess, askForCollection } from '../../ask/ask-for-collection.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { argument, choice, defineCommand, flag, list, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { readUniqueOption } from '../../ask/options.js';
import { parseFieldSpec } from '../../ask/field-spec.js';
import { readCollectionFile, readStructuredFile } from '../../formats/read-declaration-file.js';
import { presentFound } from '../../view/present.js';
import { findServiceAddress } from '../../shell/service-address.js';
import { presentAccessText, presentCollectionText } from '../collection.js';

export default defineCommand({
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
          await presentCollectionText(view, shown),
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
