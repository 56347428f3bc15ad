import { listCollections } from '../../../src/features/collections/list-collections.js';
import { presentCollection } from '../../../src/features/collections/present-collection.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand } from '../../shell/command.js';
import { presentRls } from './present.js';

export default defineCommand({
  examples: ['bsvc collection list --project shop', 'BSVC_PROJECT=shop bsvc collection list --json'],
  parameters: { project: projectOption },
  async run(context, input) {
    const { app, project } = await chooseProject(context, input.project);
    const collections = (await listCollections(app, project._id)).map(presentCollection);
    return {
      json: collections,
      quiet: collections.map(({ name }) => name),
      text: (view) =>
        collections.length === 0
          ? 'No collections yet. Register one with: bsvc collection add <name> --field title:String!'
          : view.table(
              ['name', 'mode', 'fields', 'access', 'id'],
              collections.map((each) => [each.name, each.mode, each.fields.length, presentRls(each), each.id]),
            ),
    };
  },
});
