import { presentSocialProvider, removeSocialProvider } from '../../../../src/features/users/social/social-provider.js';
import { chooseProject, projectOption } from '../../../ask/choose-project.js';
import { argument, defineCommand } from '../../../shell/command.js';

export default defineCommand({
  details: 'Users stay; those without a password set one by mail.',
  examples: ['bsvc user social remove github --project shop'],
  audited: true,
  parameters: { provider: argument('provider', 'name of the provider'), project: projectOption },
  async run(context, input) {
    const { app, project } = await chooseProject(context, input.project);
    const provider = presentSocialProvider(await removeSocialProvider(app, project, input.provider));
    return { json: provider, quiet: provider.name, text: () => `Nobody signs in through ${provider.name} any more.` };
  },
});
