import { listOf, naming, ok, parameter, route, type RouteList, wholeList } from '../../http/routes/route.js';
import { arrayOf, FLAG, MOMENT, object, text, TEXT } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import {
  listSocialProviders,
  presentSocialProvider,
  removeSocialProvider,
  setSocialProvider,
} from '../users/social/social-provider.js';

const SETTING = text({ maxLength: 500 });
const PROVIDER = object(
  {
    name: TEXT,
    issuer: TEXT,
    clientId: TEXT,
    appClientIds: arrayOf(TEXT),
    'apple?': object({ teamId: TEXT, keyId: TEXT }),
    scopes: arrayOf(TEXT),
    redirectUrls: arrayOf(TEXT),
    tokenInAddress: FLAG,
    createdAt: MOMENT,
    updatedAt: MOMENT,
  },
  'SocialProvider',
);

/**
 * Sign-in providers for end users of a project, for operators. The client secret is stored encrypted and never shown.
 */
export const PROJECT_SOCIAL_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/social',
  tag: 'Project users',
  rate: 'operator',
  params: { provider: naming('Name of the provider', 'PROVIDER_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/social', {
      id: 'listSocialProviders',
      command: 'user social list',
      summary: 'List sign-in providers',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(PROVIDER), 'Providers'),
      async handle({ app, project }) {
        return wholeList((await listSocialProviders(app, project)).map(presentSocialProvider));
      },
    }),
    route('PUT /api/projects/:projectId/social/:provider', {
      id: 'setSocialProvider',
      summary: 'Add or replace a sign-in provider',
      access: projectOwner('user social set', { asksPassword: true }),
      params: {
        provider: parameter(
          '`google`, `github`, `apple`, `microsoft`, `gitlab`, `linkedin` or a name of your choice',
          TEXT,
        ),
      },
      body: object({
        clientId: SETTING,
        clientSecret: SETTING,
        redirectUrls: arrayOf(SETTING, { minItems: 1, maxItems: 20 }),
        'issuer?': SETTING,
        'scopes?': arrayOf(SETTING, { maxItems: 20 }),
        'appClientIds?': {
          ...arrayOf(SETTING, { maxItems: 20 }),
          description: 'Client ids of your native apps, whose id tokens are accepted.',
        },
        'apple?': {
          ...object({ teamId: SETTING, keyId: SETTING }),
          description: 'For `apple`. `clientSecret` is the private key of `AuthKey_….p8`.',
        },
        'tokenInAddress?': {
          ...FLAG,
          description: 'Adds `#token=` to the redirect, as the hosted service’s React package expects.',
        },
      }),
      example: {
        clientId: '1234.apps.googleusercontent.com',
        clientSecret: 'SECRET',
        redirectUrls: ['https://shop.example.com/signed-in'],
      },
      answers: ok(PROVIDER, 'Provider stored'),
      errors: { 400: ['INVALID_PROVIDER', 'PRIVATE_ADDRESS', 'PORT_NOT_ALLOWED'] },
      async handle({ app, operator, project, params, body }) {
        const mayBePrivate = operator.projects === null;
        const input = { ...body, name: params.provider, mayBePrivate };
        return presentSocialProvider(await setSocialProvider(app, project, input));
      },
    }),
    route('DELETE /api/projects/:projectId/social/:provider', {
      id: 'removeSocialProvider',
      summary: 'Remove a sign-in provider and keep its users',
      access: projectOwner('user social remove'),
      answers: ok(PROVIDER, 'Provider removed; its users stay'),
      async handle({ app, project, params }) {
        return presentSocialProvider(await removeSocialProvider(app, project, params.provider));
      },
    }),
  ],
};
