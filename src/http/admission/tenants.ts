import { hexOf } from '../../platform/ids.js';
import type { ObjectId } from 'bson';
import type { Context } from 'koa';
import type { Tenant } from '../../fair-limiter.js';
import { clientNetwork } from '../requests/client-address.js';

/** What guards have found out about a request. */
interface Settled {
  caller?: { project: { _id: ObjectId } };
  operator?: unknown;
}

export const OPERATORS_TENANT = 'operators';

/** Whose project the work of a request is: that of its key, the operators', or none that is known yet. */
function projectOf(ctx: Context): string {
  const { caller, operator } = ctx.state as Settled;
  if (caller) return hexOf(caller.project._id);
  return operator === undefined ? '' : OPERATORS_TENANT;
}

const TENANT = Symbol('tenant');

/** Whose request it is, once its guard has settled the key. */
export function tenantOf(ctx: Context): Tenant {
  const known = (ctx as Context & { [TENANT]?: Tenant })[TENANT];
  if (known) return known;
  const tenant = { project: projectOf(ctx), address: clientNetwork(ctx.ip) };
  (ctx as Context & { [TENANT]?: Tenant })[TENANT] = tenant;
  return tenant;
}
