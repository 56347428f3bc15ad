import type { Collection, RlsMode } from '../../../src/features/collections/collection.js';
import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { completeRules } from '../../../src/features/collections/rules/check-rules.js';
import { SERVER_ONLY } from '../../../src/features/collections/rules/collection-rules.js';
import { setRls, planRules, setRules } from '../../../src/features/collections/change-collection.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { askForRls } from '../../ask/ask-for-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { givenRules, RULE_OPTIONS } from '../../ask/rule-options.js';
import { choice, defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import type { Result } from '../../view/output.js';
import { presentCollectionAccess, presentRules } from '../collection.js';

export default defineCommand({
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
    mode: choice<RlsMode>('--mode <mode>', 'which rule', ['public-read', 'private']),
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
