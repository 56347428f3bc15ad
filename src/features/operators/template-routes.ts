import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { listTemplates, removeTemplate, requireTemplate, setTemplate } from '../mail/mail-template.js';
import type { MailText } from '../mail/render-template.js';

const PREFIX = '/api/projects/:projectId/mail/templates';
const TEXT = { type: 'string', maxLength: 500_000 };

export const readTemplateBody = compileReader<MailText>({
  type: 'object',
  required: ['subject'],
  additionalProperties: false,
  properties: { subject: { type: 'string', maxLength: 1000 }, html: TEXT, text: TEXT },
});

/** Mail templates of a project, for operators; one of a system template's name overrides it. */
export function templateRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const operator = requireOperator(app);

  router.get('/', operator, async (ctx) => {
    const items = await listTemplates(app, await operatedProject(app, ctx));
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Templates' };
  });

  router.get('/:name', operator, async (ctx) => {
    const { text, used } = await requireTemplate(app, await operatedProject(app, ctx), { name: ctx.params.name! });
    ctx.body = { success: true, data: { ...used, ...text }, message: 'Template' };
  });

  router.put('/:name', requireOwner(app, 'mail template set'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { _id, name, scope, subject, html, text } = await setTemplate(
      app,
      project,
      ctx.params.name!,
      readTemplateBody(ctx.request.body),
    );
    ctx.body = {
      success: true,
      data: { id: _id.toHexString(), name, scope, subject, html, text },
      message: 'Template stored',
    };
  });

  router.delete('/:name', requireOwner(app, 'mail template remove'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    await removeTemplate(app, project, ctx.params.name!);
    ctx.body = { success: true, data: { name: ctx.params.name }, message: 'Template removed' };
  });

  return { prefix: PREFIX, router };
}
