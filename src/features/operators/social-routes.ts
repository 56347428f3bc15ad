import type { App } from '../../app.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, operatorOf, requireOperator, requireOwner } from '../access/require-operator.js';
import {
  listSocialProviders,
  presentSocialProvider,
  removeSocialProvider,
  setSocialProvider,
  type SocialProviderInput,
} from '../users/social-provider.js';

const PREFIX = '/api/projects/:projectId/social';
const TEXT = { type: 'string', maxLength: 500 };

export const readProviderBody = compileReader<Omit<SocialProviderInput, 'name' | 'mayBePrivate'>>({
  type: 'object',
  required: ['clientId', 'clientSecret', 'redirectUrls'],
  additionalProperties: false,
  properties: {
    clientId: TEXT,
    clientSecret: TEXT,
    redirectUrls: { type: 'array', items: TEXT, minItems: 1, maxItems: 20 },
    issuer: TEXT,
    scopes: { type: 'array', items: TEXT, maxItems: 20 },
  },
});

/** Through whom end users of a project may sign in, for operators. The client secret is stored sealed and never shown. */
export function projectSocialRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);

  router.get('/', requireOperator(app), async (ctx) => {
    const items = (await listSocialProviders(app, await operatedProject(app, ctx))).map(presentSocialProvider);
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Providers' };
  });

  router.put('/:provider', requireOwner(app, 'user social set'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const mayBePrivate = operatorOf(ctx).projects === null;
    const input = { ...readProviderBody(ctx.request.body), name: ctx.params.provider!, mayBePrivate };
    const data = presentSocialProvider(await setSocialProvider(app, project, input));
    ctx.body = { success: true, data, message: 'Provider stored' };
  });

  router.delete('/:provider', requireOwner(app, 'user social remove'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const data = presentSocialProvider(await removeSocialProvider(app, project, ctx.params.provider!));
    ctx.body = { success: true, data, message: 'Provider removed; its users stay' };
  });

  return { prefix: PREFIX, router };
}
