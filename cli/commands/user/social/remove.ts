import { presentSocialProvider, removeSocialProvider } from '../../../../src/features/users/social/social-provider.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { argument } from '../../../shell/command.js';

export default defineProjectCommand({
  details: 'Users stay; those without a password set one by mail.',
  examples: ['bsvc user social remove github --project shop', 'bsvc user social remove github --project shop --yes'],
  audited: true,
  destroys: ({ provider }) => ({ what: `Removes the provider ${provider} and its client secret.`, name: provider }),
  parameters: { provider: argument('provider', 'name of the provider') },
  async run(context, { app, project, provider: name }) {
    const provider = presentSocialProvider(await removeSocialProvider(app, project, name));
    return { json: provider, quiet: provider.name, text: () => `Nobody signs in through ${provider.name} any more.` };
  },
});
