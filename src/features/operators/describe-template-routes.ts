import {
  ID,
  jsonBody,
  listOf,
  naming,
  object,
  ok,
  oneOf,
  orNull,
  parameter,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readTemplateBody } from './template-routes.js';

const HEAD = { id: orNull(ID), name: TEXT, scope: oneOf('project', 'system', 'embedded') };
const BODIES = { subject: TEXT, 'html?': TEXT, 'text?': TEXT };

/** As in template-routes.ts. */
export const TEMPLATE_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/mail/templates',
  tag: 'Project templates',
  about: 'Mail templates of a project; one of a system template’s name overrides it.',
  path: { name: naming('Name of the template', 'TEMPLATE_NOT_FOUND') },
  routes: {
    'GET /': {
      id: 'listTemplates',
      summary: 'List templates, the system’s too',
      access: OPERATOR,
      answers: ok('All of them', listOf(object({ ...HEAD, subject: TEXT }, 'TemplateSummary'))),
    },
    'GET /:name': {
      id: 'getTemplate',
      summary: 'Get the template that mails of this name use',
      access: OPERATOR,
      answers: ok('The template', object({ ...HEAD, key: TEXT, ...BODIES }, 'UsedTemplate')),
    },
    'PUT /:name': {
      id: 'setTemplate',
      summary: 'Store a template',
      access: OWNER,
      path: { name: parameter('Name of the template', TEXT) },
      body: jsonBody(readTemplateBody.schema, { subject: 'Hello {{name}}', text: 'Good to have you, {{name}}.' }),
      answers: ok('The template', object({ ...HEAD, ...BODIES }, 'Template')),
      refuses: { 400: ['INVALID_NAME', 'INVALID_TEMPLATE'] },
    },
    'DELETE /:name': {
      id: 'removeTemplate',
      summary: 'Remove a template of the project',
      access: OWNER,
      answers: ok('Removed', object({ name: TEXT })),
    },
  },
};
