import {
  arrayOf,
  envelope,
  jsonAnswer,
  jsonBody,
  listOf,
  MOMENT,
  object,
  parameter,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readProviderBody } from './social-routes.js';

/** What presentSocialProvider answers. */
const PROVIDER = object(
  {
    name: TEXT,
    issuer: TEXT,
    clientId: TEXT,
    scopes: arrayOf(TEXT),
    redirectUrls: arrayOf(TEXT),
    createdAt: MOMENT,
    updatedAt: MOMENT,
  },
  'SocialProvider',
);
const NAMED = { provider: parameter('`google`, `github` or a name of your choice', TEXT) };

/** As in social-routes.ts. */
export const PROJECT_SOCIAL_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/social',
  tag: 'Project users',
  about: 'End users of a project, as its operators see them.',
  routes: {
    'GET /': {
      id: 'listSocialProviders',
      summary: 'List sign-in providers',
      access: OPERATOR,
      answers: { 200: jsonAnswer('All of them, without their secrets', envelope(listOf(PROVIDER))) },
    },
    'PUT /:provider': {
      id: 'setSocialProvider',
      summary: 'Add a sign-in provider or replace its settings',
      access: OWNER,
      path: NAMED,
      body: jsonBody(readProviderBody.schema, {
        clientId: '1234.apps.googleusercontent.com',
        clientSecret: 'SECRET',
        redirectUrls: ['https://shop.example.com/signed-in'],
      }),
      answers: { 200: jsonAnswer('The provider', envelope(PROVIDER)) },
      refuses: { 400: ['INVALID_PROVIDER'] },
    },
    'DELETE /:provider': {
      id: 'removeSocialProvider',
      summary: 'Remove a sign-in provider; its users stay',
      access: OWNER,
      path: NAMED,
      answers: { 200: jsonAnswer('What was removed', envelope(PROVIDER)) },
      refuses: { 404: ['PROVIDER_NOT_FOUND'] },
    },
  },
};
