import {
  listSocialProviders,
  presentSocialProvider,
  removeSocialProvider,
  setSocialProvider,
} from '../../../src/features/users/social/social-provider.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { defineCommand, flag, list, optionalArgument, secret, option } from '../../shell/command.js';
import { readSecret } from '../../shell/read-secret.js';
import { findServiceAddress } from '../../shell/service-address.js';
import { UsageError } from '../../view/exit.js';
import type { Result } from '../../view/output.js';
import { presentList } from '../../view/present.js';

export default defineCommand({
  details: [
    'Without a provider, lists the configured ones. With one, adds it or replaces its settings. --remove removes it: its users stay, and those without a password set one by email.',
    'google, github, apple, microsoft, gitlab and linkedin are built in; any other OpenID provider needs its --issuer.',
    'The secret of apple is its private key (AuthKey_….p8): add its --team-id and --key-id.',
    'Register <public address>/api/userAuth/social/<provider>/callback there. Browsers are sent back to the --redirect-url addresses only.',
  ].join('\n'),
  examples: [
    'bsvc user social --project shop',
    'bsvc user social google --project shop --client-id 1234.apps.googleusercontent.com --redirect-url https://shop.example.com/signed-in --client-secret-stdin < secret.txt',
    'bsvc user social github --project shop --client-id 12ab --redirect-url https://shop.example.com/in --token-in-address --client-secret-env GITHUB_SECRET',
    'bsvc user social apple --project shop --client-id com.shop.web --team-id ABCDE12345 --key-id 12345ABCDE --app-client-id com.shop.app --redirect-url https://shop.example.com/in --client-secret-env APPLE_KEY',
    'bsvc user social github --project shop --remove --yes',
    'bsvc user social acme --project shop --issuer https://id.acme.com --client-id shop --redirect-url https://shop.example.com/in --client-secret-env ACME_SECRET',
  ],
  audited: ({ provider }) => provider !== undefined,
  destroys: 'at times',
  parameters: {
    provider: optionalArgument(
      'provider',
      'google, github, apple, microsoft, gitlab, linkedin or a name of your choice',
    ),
    project: projectOption,
    remove: flag('--remove', 'remove the provider'),
    clientId: option('--client-id <id>', 'the client id that the provider gave you'),
    clientSecret: secret('client-secret', 'the secret that goes with it'),
    redirectUrls: list(
      '--redirect-url <url>',
      'allowed redirect URL after sign-in (repeatable, the first is the default)',
    ),
    issuer: option('--issuer <url>', 'OpenID issuer URL, or the URL of your GitHub Enterprise server'),
    appClientIds: list(
      '--app-client-id <id>',
      'client id of your own app whose id tokens are accepted too (repeatable)',
    ),
    teamId: option('--team-id <id>', 'for apple: id of the developer’s team'),
    keyId: option('--key-id <id>', 'for apple: id of the private key'),
    scopes: list('--scope <scope>', 'what to ask for (repeatable, default: e-mail address and profile)'),
    tokenInAddress: flag(
      '--token-in-address',
      'add #token= to the redirect, next to rtCode, for apps of the hosted service',
    ),
  },
  async run(context, { provider: name, remove, ...input }) {
    if (name === undefined) {
      if (remove) throw new UsageError('--remove needs the name of the provider.');
      const { app, project } = await chooseProject(context, input.project);
      return presentProviders((await listSocialProviders(app, project)).map(presentSocialProvider));
    }
    if (remove) {
      await context.confirm({ what: `Removes the provider ${name} and its client secret.`, name });
      const { app, project } = await chooseProject(context, input.project);
      const json = presentSocialProvider(await removeSocialProvider(app, project, name));
      return { json, quiet: name, text: () => `Users can no longer sign in with ${name}.` };
    }
    const clientId = input.clientId ?? (await context.ask.text('Client id:', 'No client id: add --client-id <id>'));
    const redirectUrls =
      input.redirectUrls.length > 0
        ? input.redirectUrls
        : [
            await context.ask.text(
              'Address to send browsers back to:',
              'No address to return to: add --redirect-url <url>',
            ),
          ];
    const { teamId, keyId } = input;
    if ((teamId === undefined) !== (keyId === undefined)) throw new UsageError('Give --team-id and --key-id together');
    const { app, project } = await chooseProject(context, input.project);
    const clientSecret = await readSecret(context, input.clientSecret, 'Client secret');
    const { issuer, scopes, tokenInAddress } = input;
    const provider = presentSocialProvider(
      await setSocialProvider(app, project, {
        name,
        clientId,
        clientSecret,
        redirectUrls,
        appClientIds: input.appClientIds,
        ...(teamId !== undefined && keyId !== undefined && { apple: { teamId, keyId } }),
        issuer,
        scopes,
        tokenInAddress,
        mayBePrivate: true,
      }),
    );
    const address = await findServiceAddress(app);
    return {
      json: provider,
      quiet: provider.name,
      text: () =>
        [
          `Users of ${project.name} may sign in through ${provider.name} (${provider.issuer}).`,
          `Register there: ${address}/api/userAuth/social/${provider.name}/callback`,
        ].join('\n'),
    };
  },
});

const presentProviders = (providers: ReturnType<typeof presentSocialProvider>[]): Result =>
  presentList(providers, {
    name: ({ name }) => name,
    empty: 'No providers yet. Add one with: bsvc user social google',
    head: ['name', 'issuer', 'client id', 'sends back to'],
    row: ({ name, issuer, clientId, redirectUrls }) => [name, issuer, clientId, redirectUrls.join(' ')],
  });
