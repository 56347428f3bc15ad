import type { App } from '../../../app.js';
import { storeOf } from '../../../platform/database/store-of.js';
import { isRestoring } from '../../../platform/database/restore-mark.js';
import { isLike, recentRequests, type RequestFilter, type SeenRequest } from './recent-requests.js';

export const KEPT_DAYS = 7;
export const MOST_KEPT = 10_000;
const DAY_MS = 86_400_000;

interface KeptRequest extends SeenRequest {
  /** Begins with the moment, so that its order is that of time. */
  _id: string;
}

const keptStore = storeOf<KeptRequest>('kept_requests');

/**
 * Stores the failed and slow requests of this process that were noted since the last call, at most a hundred, and
 * removes those that are too old or too many.
 */
export async function storeKeptRequests(app: App): Promise<void> {
  const noted = recentRequests(app).takeToKeep();
  if (noted.length === 0 || (await isRestoring(app.db))) return;
  await keptStore(app).insertMany(noted.map((request) => ({ _id: idOf(request.atMs, request.requestId), ...request })));
  const [oldest] = await keptStore(app).find({}).sort({ _id: -1 }).skip(MOST_KEPT).limit(1).toArray();
  const tooOld = idOf(app.clock.now() - KEPT_DAYS * DAY_MS);
  await keptStore(app).deleteMany({ _id: { $lte: oldest && oldest._id > tooOld ? oldest._id : tooOld } });
}

/** The failed and slow requests of all processes, the newest first. */
export async function findKeptRequests(app: App, filter: RequestFilter): Promise<SeenRequest[]> {
  const found: SeenRequest[] = [];
  const since = idOf(app.clock.now() - KEPT_DAYS * DAY_MS);
  for await (const { _id, ...request } of keptStore(app)
    .find({ _id: { $gt: since } })
    .sort({ _id: -1 })) {
    if (isLike(request, filter)) found.push(request);
    if (found.length >= filter.limit) break;
  }
  return found;
}

function idOf(atMs: number, requestId = ''): string {
  return `${new Date(atMs).toISOString()} ${requestId}`;
}
