import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { setChanges } from '../../../src/features/changes/set-changes.js';
import { lifetime, presentDuration } from '../../../src/config/setting-readers.js';
import { chooseCollection, collectionArgument } from '../../ask/choose-collection.js';
import { projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { UsageError } from '../../view/exit.js';

export default defineCommand({
  details:
    'Whoever follows a collection by GET /api/data/<collection>/changes loses nothing while away, as long as changes are kept. On the embedded engine it is on unless it is switched off; on a MongoDB it costs two more writes for each change and is off. After --off followers start over.',
  examples: [
    'bsvc collection changes posts --project shop --on',
    'bsvc collection changes posts --project shop --keep 7d',
    'bsvc collection changes posts --project shop --off',
  ],
  audited: true,
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    on: flag('--on', 'keep changes'),
    off: flag('--off', 'keep none, and remove those that were kept'),
    keep: option('--keep <duration>', 'how long (default: BSVC_KEEP)', lifetime),
  },
  async run(context, input) {
    if (input.on && input.off) throw new UsageError('Give either --on or --off.');
    if (!input.on && !input.off && input.keep === undefined) {
      throw new UsageError('Nothing to change: give --on, --off or --keep.');
    }
    const { app, project, collection } = await chooseCollection(context, input);
    const changed = await setChanges(app, project._id, collection.name, {
      ...((input.on || input.off) && { on: input.on }),
      ...(input.keep !== undefined && { keepMs: input.keep }),
    });
    const shown = presentCollection(changed);
    const { on, keepMs } = shown.changes ?? {};
    const state = on === undefined ? 'as the database has it' : on ? 'on' : 'off';
    const kept = on === false || keepMs === undefined ? '' : `, kept for ${presentDuration(keepMs)}`;
    return { json: shown, quiet: shown.id, text: () => `${shown.name}: changes ${state}${kept}.` };
  },
});
