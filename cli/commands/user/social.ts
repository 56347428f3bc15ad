import {
  listSocialProviders,
  presentSocialProvider,
  removeSocialProvider,
  setSocialProvider,
} from '../../../src/features/users/social/social-provider.js';
import { chooseProject, defineProjectCommand, projectOption } from '../../ask/choose.js';
import { argument, defineCommand, flag, list, option, secret } from '../../shell/command.js';
import { readSecret } from '../../shell/read-secret.js';
import { findServiceAddress } from '../../shell/service-address.js';
import { UsageError } from '../../view/exit.js';
import { presentList } from '../../view/present.js';

const shown = defineProjectCommand({
  details: 'Client secrets are never shown.',
  examples: ['bsvc user social list --project shop'],
  async run(_context, { app, project }) {
    const providers = (await listSocialProviders(app, project)).map(presentSocialProvider);
    return presentList(providers, {
      name: ({ name }) => name,
      empty: 'No providers yet. Add one with: bsvc user social set google',
      head: ['name', 'issuer', 'client id', 'sends back to'],
      row: ({ name, issuer, clientId, redirectUrls }) => [name, issuer, clientId, redirectUrls.join(' ')],
    });
  },
});

const set = defineCommand({
  details: [
    'Adds the provider, or replaces its settings.',
    'google, github, apple, microsoft, gitlab and linkedin are built in; any other OpenID provider needs its --issuer.',
    'apple needs --team, --key-id and its private key (AuthKey_….p8) in place of the client secret.',
    'Register <public address>/api/userAuth/social/<provider>/callback there. Browsers are sent back to the --redirect-url addresses only.',
  ].join('\n'),
  examples: [
    'bsvc user social set google --project shop --client-id 1234.apps.googleusercontent.com --redirect-url https://shop.example.com/signed-in --client-secret-stdin < secret.txt',
    'bsvc user social set github --project shop --client-id 12ab --redirect-url https://shop.example.com/in --token-in-address --client-secret-env GITHUB_SECRET',
    'bsvc user social set apple --project shop --client-id com.shop.web --team ABCDE12345 --key-id 12345ABCDE --app-client-id com.shop.app --redirect-url https://shop.example.com/in --key-env APPLE_KEY',
    'bsvc user social set acme --project shop --issuer https://id.acme.com --client-id shop --redirect-url https://shop.example.com/in --client-secret-env ACME_SECRET',
  ],
  audited: true,
  parameters: {
    name: argument('provider', 'google, github, apple, microsoft, gitlab, linkedin or a name of your choice'),
    project: projectOption,
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
    teamId: option('--team <id>', 'for apple: id of the developer’s team'),
    keyId: option('--key-id <id>', 'for apple: id of the private key'),
    key: secret('key', 'for apple: the private key'),
    scopes: list('--scope <scope>', 'what to ask for (repeatable, default: e-mail address and profile)'),
    tokenInAddress: flag(
      '--token-in-address',
      'add #token= to the redirect, next to rtCode, for apps of the hosted service',
    ),
  },
  async run(context, { name, project: named, teamId, keyId, key, ...input }) {
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
    if ((teamId === undefined) !== (keyId === undefined)) throw new UsageError('Give --team and --key-id together');
    const { app, project } = await chooseProject(context, named);
    const apple = teamId !== undefined && keyId !== undefined ? { teamId, keyId } : undefined;
    const clientSecret = await (apple || key.stdin || key.env !== undefined
      ? readSecret(context, key, 'Private key')
      : readSecret(context, input.clientSecret, 'Client secret'));
    const provider = presentSocialProvider(
      await setSocialProvider(app, project, {
        ...input,
        ...{ name, clientId, clientSecret, redirectUrls, mayBePrivate: true },
        ...(apple && { apple }),
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

const remove = defineCommand({
  details: 'Its users stay; those without a password set one by email.',
  examples: ['bsvc user social remove github --project shop --yes'],
  audited: true,
  destroys: ({ name }) => ({ what: `Removes the provider ${name} and its client secret.`, name }),
  parameters: { name: argument('provider', 'name of the provider'), project: projectOption },
  async run(context, { name, project: named }) {
    const { app, project } = await chooseProject(context, named);
    const json = presentSocialProvider(await removeSocialProvider(app, project, name));
    return { json, quiet: name, text: () => `Users can no longer sign in with ${name}.` };
  },
});

export default { list: shown, set, remove };
