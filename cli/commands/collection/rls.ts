import type { RlsMode } from '../../../src/features/collections/collection.js';
import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { setRls } from '../../../src/features/collections/set-rls.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { askForRls } from '../../ask/ask-for-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { choice, defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';
import { presentCollectionAccess } from './present.js';

export default defineCommand({
  details:
    'public-read: everyone reads, signed-in users write their own documents. private: signed-in users see and write only their own. The secret key may do everything. A server-only collection becomes what --mode says; --off leaves it as it is.',
  examples: [
    'bsvc collection rls posts --project shop --mode public-read',
    'bsvc collection rls notes --project shop --mode private --owner-field userId',
    'bsvc collection rls posts --project shop --off',
  ],
  audited: true,
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    mode: choice<RlsMode>('--mode <mode>', 'which rule', ['public-read', 'private']),
    ownerField: option(
      '--owner-field <field>',
      'field that holds the owner’s user id (default: the present one, or userId)',
    ),
    off: flag('--off', 'switch row-level security off: then every key reads, the secret key writes'),
  },
  async run(context, input) {
    const bare = !input.off && input.mode === undefined && input.ownerField === undefined && context.ask.possible;
    if (!bare && (input.off ? input.mode !== undefined || input.ownerField !== undefined : input.mode === undefined)) {
      throw new UsageError('Give either --mode public-read|private, or --off.');
    }
    const { app, project, collection } = await chooseCollection(context, input);
    const given = input.mode
      ? { mode: input.mode, ownerField: input.ownerField ?? collection.rls?.ownerField ?? 'userId' }
      : null;
    const rls = bare ? await askForRls(context) : given;
    const changed = presentCollection(await setRls(app, project._id, collection.name, rls));
    return { json: changed, quiet: changed.id, text: () => `${changed.name}: ${presentCollectionAccess(changed)}.` };
  },
});
