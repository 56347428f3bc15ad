import { listOf, naming, ok, own, parameter, route, type RouteList, wholeList } from '../../http/routes/route.js';
import { ID, object, oneOf, orNull, text, TEXT } from '../../platform/schema/schema.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { listTemplates, removeTemplate, requireTemplate, setTemplate } from '../mail/mail-template.js';

const HEAD = { id: orNull(ID), name: TEXT, scope: oneOf('project', 'system', 'embedded') };
const SHOWN = { subject: TEXT, 'html?': TEXT, 'text?': TEXT };
const BODY = text({ maxLength: 500_000 });

/** A mail's own styles and pictures in it; no script, nothing from elsewhere, and none of this origin's rights. */
const PREVIEW_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox";

export const TEMPLATE_ROUTES: RouteList = {
  prefix: '/api/projects/:projectId/mail/templates',
  tag: 'Project templates',
  rate: 'operator',
  about: 'Mail templates of a project; one of a system template’s name overrides it.',
  params: { name: naming('Name of the template', 'TEMPLATE_NOT_FOUND') },
  routes: [
    route('GET /api/projects/:projectId/mail/templates', {
      id: 'listTemplates',
      command: 'mail template list',
      summary: 'List templates, including built-in ones',
      access: PROJECT_OPERATOR,
      answers: ok(listOf(object({ ...HEAD, subject: TEXT }, 'TemplateSummary')), 'Templates'),
      async handle({ app, project }) {
        return wholeList(await listTemplates(app, project));
      },
    }),
    route('GET /api/projects/:projectId/mail/templates/:name', {
      id: 'getTemplate',
      command: 'mail template list',
      summary: 'Get a template',
      access: PROJECT_OPERATOR,
      answers: ok(object({ ...HEAD, key: TEXT, ...SHOWN }, 'UsedTemplate'), 'Template'),
      async handle({ app, project, params: { name } }) {
        const { text: content, used } = await requireTemplate(app, project, { name });
        return { ...used, ...content };
      },
    }),
    route('GET /api/projects/:projectId/mail/templates/:name/preview', {
      id: 'previewTemplate',
      summary: 'Preview the HTML part of a template',
      description: 'The page cannot run scripts or load resources.',
      access: PROJECT_OPERATOR,
      answers: own(200, 'The page', { 'text/html': TEXT }),
      async handle({ app, ctx, project, params: { name } }) {
        const { text: content } = await requireTemplate(app, project, { name });
        ctx.set({ 'Content-Security-Policy': PREVIEW_POLICY, 'Referrer-Policy': 'no-referrer' });
        ctx.type = 'text/html; charset=utf-8';
        ctx.body = content.html ?? '<!doctype html><title>No HTML</title><p>This template has a text part alone.</p>';
      },
    }),
    route('PUT /api/projects/:projectId/mail/templates/:name', {
      id: 'setTemplate',
      summary: 'Store a template',
      access: projectOwner('mail template set', { asksPassword: true }),
      params: { name: parameter('Name of the template', TEXT) },
      body: object({ subject: text({ maxLength: 1000 }), 'html?': BODY, 'text?': BODY }),
      example: { subject: 'Hello {{name}}', text: 'Good to have you, {{name}}.' },
      answers: ok(object({ ...HEAD, ...SHOWN }, 'Template'), 'Template stored'),
      errors: { 400: ['INVALID_NAME', 'INVALID_TEMPLATE'] },
      async handle({ app, project, params, body }) {
        const { _id, name, scope, subject, html, text: plainText } = await setTemplate(app, project, params.name, body);
        return { id: _id.toHexString(), name, scope, subject, html, text: plainText };
      },
    }),
    route('DELETE /api/projects/:projectId/mail/templates/:name', {
      id: 'removeTemplate',
      summary: 'Delete a template of the project',
      access: projectOwner('mail template remove', { asksPassword: true }),
      answers: ok(object({ name: TEXT }), 'Template removed'),
      async handle({ app, project, params: { name } }) {
        await removeTemplate(app, project, name);
        return { name };
      },
    }),
  ],
};
