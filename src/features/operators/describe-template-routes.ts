import {
  envelope,
  ID,
  jsonAnswer,
  jsonBody,
  listOf,
  object,
  oneOf,
  orNull,
  parameter,
  TEXT,
  type GroupDescription,
} from '../../http/route-description.js';
import { OPERATOR, OWNER } from '../access/describe-access.js';
import { readTemplateBody } from './template-routes.js';

const NAMED = { name: parameter('Name of the template', TEXT) };
const HEAD = { id: orNull(ID), name: TEXT, scope: oneOf('project', 'system', 'embedded') };
const BODIES = { subject: TEXT, 'html?': TEXT, 'text?': TEXT };
const UNKNOWN = ['TEMPLATE_NOT_FOUND'];

/** As in template-routes.ts. */
export const TEMPLATE_ROUTES: GroupDescription = {
  prefix: '/api/projects/:projectId/mail/templates',
  tag: 'Project templates',
  about: 'Mail templates of a project; one of a system template’s name overrides it.',
  routes: {
    'GET /': {
      id: 'listTemplates',
      summary: 'List templates, the system’s too',
      access: OPERATOR,
      answers: {
        200: jsonAnswer('All of them', envelope(listOf(object({ ...HEAD, subject: TEXT }, 'TemplateSummary')))),
      },
    },
    'GET /:name': {
      id: 'getTemplate',
      summary: 'Get the template that mails of this name use',
      access: OPERATOR,
      path: NAMED,
      answers: { 200: jsonAnswer('The template', envelope(object({ ...HEAD, key: TEXT, ...BODIES }, 'UsedTemplate'))) },
      refuses: { 404: UNKNOWN },
    },
    'PUT /:name': {
      id: 'setTemplate',
      summary: 'Store a template',
      access: OWNER,
      path: NAMED,
      body: jsonBody(readTemplateBody.schema, { subject: 'Hello {{name}}', text: 'Good to have you, {{name}}.' }),
      answers: { 200: jsonAnswer('The template', envelope(object({ ...HEAD, ...BODIES }, 'Template'))) },
      refuses: { 400: ['INVALID_NAME', 'INVALID_TEMPLATE'] },
    },
    'DELETE /:name': {
      id: 'removeTemplate',
      summary: 'Remove a template of the project',
      access: OWNER,
      path: NAMED,
      answers: { 200: jsonAnswer('Removed', envelope(object({ name: TEXT }))) },
      refuses: { 404: UNKNOWN },
    },
  },
};
