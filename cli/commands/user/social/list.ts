import { listSocialProviders, presentSocialProvider } from '../../../../src/features/users/social/social-provider.js';
import { defineProjectCommand } from '../../../ask/choose-project.js';
import { presentList } from '../../../view/present-list.js';

export default defineProjectCommand({
  examples: ['bsvc user social list --project shop'],
  async run(context, { app, project }) {
    const providers = (await listSocialProviders(app, project)).map(presentSocialProvider);
    return presentList(providers, {
      name: ({ name }) => name,
      empty: 'No providers yet. Add one with: bsvc user social set google',
      head: ['name', 'issuer', 'client id', 'sends back to'],
      row: ({ name, issuer, clientId, redirectUrls }) => [name, issuer, clientId, redirectUrls.join(' ')],
    });
  },
});
