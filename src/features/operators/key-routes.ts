import type { App } from '../../app.js';
import { parseDuration } from '../../setting-readers.js';
import { createRouter, type RouteGroup } from '../../http/routes.js';
import { compileReader } from '../../platform/json-schema.js';
import { operatedProject, requireOperator, requireOwner } from '../access/require-operator.js';
import { createKey, revokeKey, rotateKey, type NewKey } from '../projects/manage-keys.js';
import { presentKey } from '../projects/present-project.js';
import { KEY_TYPES, type KeyType } from '../projects/project.js';

const PREFIX = '/api/projects/:projectId/keys';
const TYPE = { enum: KEY_TYPES };
/** How long what is replaced goes on working. */
export const GRACE = { type: 'string', pattern: '^\\d{1,6}(s|m|h|d)$' };
const DEFAULT_GRACE = '24h';

export const readNewKey = compileReader<{ type: KeyType }>({
  type: 'object',
  required: ['type'],
  additionalProperties: false,
  properties: { type: TYPE },
});

export const readRotation = compileReader<{ type: KeyType; grace?: string }>({
  type: 'object',
  required: ['type'],
  additionalProperties: false,
  properties: { type: TYPE, grace: GRACE },
});

/** API keys of a project, for operators. A value is answered once, when its key is made. */
export function keyRoutes(app: App): RouteGroup {
  const router = createRouter(PREFIX);
  const owner = (action: string) => requireOwner(app, action);
  const presentNew = ({ key, value }: NewKey) => ({ key: presentKey(key, app.clock.now()), value });

  router.get('/', requireOperator(app), async (ctx) => {
    const { keys } = await operatedProject(app, ctx);
    const items = keys.map((key) => presentKey(key, app.clock.now()));
    ctx.body = { success: true, data: { items, total: items.length }, message: 'Keys' };
  });

  router.post('/', owner('key create'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { type } = readNewKey(ctx.request.body);
    const data = presentNew(await createKey(app, project, type));
    ctx.status = 201;
    ctx.body = { success: true, data, message: 'Key created. Its value is shown only now.' };
  });

  router.post('/rotate', owner('key rotate'), async (ctx) => {
    const project = await operatedProject(app, ctx);
    const { type, grace = DEFAULT_GRACE } = readRotation(ctx.request.body);
    const data = presentNew(await rotateKey(app, project, type, parseDuration(grace)));
    ctx.status = 201;
    ctx.body = {
      success: true,
      data,
      message: `Key created; the older ones of its type end in ${grace}. Its value is shown only now.`,
    };
  });

  router.delete('/:keyId', owner('key revoke'), async (ctx) => {
    const key = await revokeKey(app, await operatedProject(app, ctx), ctx.params.keyId!.toLowerCase());
    ctx.body = { success: true, data: presentKey(key, app.clock.now()), message: 'Key revoked' };
  });

  return { prefix: PREFIX, router };
}
