import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { completeRules } from '../../../src/features/collections/rules/check-rules.js';
import { SERVER_ONLY } from '../../../src/features/collections/rules/collection-rules.js';
import { planRules, setRules } from '../../../src/features/collections/set-rules.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { givenRules, RULE_OPTIONS } from '../../ask/rule-options.js';
import { defineCommand, flag } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentCollectionAccess, presentRules } from './present.js';

export default defineCommand({
  details: [
    'A rule is anyone, nobody, or conditions on the caller and the document, joined by "and" and "or":',
    '  user · doc.owner = user.id · user.id in doc.members · doc.visibility = "public" · "staff" in user.groups',
    'A rule that is not given stays as it is; without rules before it is nobody. The secret key stands above all rules.',
  ].join('\n'),
  examples: [
    "bsvc collection rules lists --project shop --read 'user.id in doc.members' --create 'doc.owner = user.id' --update 'user.id in doc.members' --delete 'doc.owner = user.id'",
    'bsvc collection rules invites --project shop --server-only',
    'bsvc collection rules lists --project shop --public',
  ],
  audited: true,
  destroys: 'at times',
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    ...RULE_OPTIONS,
    serverOnly: flag('--server-only', 'the secret key only'),
    public: flag('--public', 'no rules: every key reads, the secret key writes'),
    off: flag('--off', 'the same as --public'),
  },
  async run(context, input) {
    const given = givenRules(input);
    const ways = [Object.keys(given).length > 0, input.serverOnly, input.public || input.off].filter(Boolean).length;
    if (ways !== 1) throw new UsageError('Give rules such as --read user, or --server-only, or --public.');
    const { app, project, collection } = await chooseCollection(context, input);
    const rules =
      input.public || input.off
        ? null
        : input.serverOnly
          ? SERVER_ONLY
          : completeRules({ ...collection.rules, ...given });
    const { loosened } = await planRules(app, collection, rules);
    if (loosened.length > 0) {
      const what = `Loosens "${collection.name}" of project ${project.name}: ${loosened.join('; ')}.`;
      await context.confirm({ what, name: project.name, reversible: true });
    }
    const agreed = loosened.length > 0;
    const changed = presentCollection(await setRules(app, project._id, collection.name, rules, { agreed }));
    return {
      json: changed,
      quiet: changed.id,
      text: () =>
        `${changed.name}: ${changed.access === 'rules' ? presentRules(changed) : presentCollectionAccess(changed)}`,
    };
  },
});
