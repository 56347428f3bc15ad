import type Koa from 'koa';
import type { App } from './app.js';
import { type Caller, tenantOfCaller } from './features/access/caller.js';
import { limitRequests } from './features/access/limit-requests.js';
import { DOCUMENT_ROUTES } from './features/documents/document-routes.js';
import { BATCH_ROUTES } from './features/documents/batch/batch-routes.js';
import { SCHEMA_ROUTES } from './features/documents/schema-routes.js';
import { LOCAL_FILE_ROUTES } from './features/files/local-file-routes.js';
import { FILE_ROUTES } from './features/files/file-routes.js';
import { USER_ROUTES } from './features/users/user-routes.js';
import { FEED_ROUTES, STREAM_ROUTES } from './features/feed/feed-routes.js';
import { streamHub } from './features/feed/streams/stream-hub.js';
import { RUN_ROUTES } from './features/hooks/run-routes.js';
import { HOOK_ROUTES } from './features/hooks/hook-routes.js';
import { CALL_ROUTES, SCHEDULE_ROUTES } from './features/hooks/schedule-routes.js';
import { HEALTH_ROUTES } from './features/health/health-routes.js';
import { rejectWhileRestoring } from './features/health/reject-while-restoring.js';
import { MAIL_OPERATOR_ROUTES, MAIL_ROUTES } from './features/mail/mail-routes.js';
import { PROJECT_INVITE_ROUTES, PROJECT_USER_ROUTES } from './features/management/project-user-routes.js';
import { ADMIN_ROUTES } from './features/operators/admin-routes.js';
import { BUCKET_ROUTES } from './features/management/bucket-routes.js';
import { PROJECT_FILE_ROUTES } from './features/management/file-routes.js';
import { RULES_ROUTES } from './features/management/rules-route.js';
import { PROJECT_DOCUMENT_ROUTES } from './features/management/document-routes.js';
import { PROJECT_SCHEMA_ROUTES } from './features/management/schema-routes.js';
import { PROJECT_SOCIAL_ROUTES } from './features/management/social-routes.js';
import { COLLECTION_ROUTES } from './features/management/collection-routes.js';
import { KEY_ROUTES } from './features/management/key-routes.js';
import { PROJECT_ROUTES } from './features/management/project-routes.js';
import { TEMPLATE_ROUTES } from './features/management/template-routes.js';
import { offerLogSize } from './features/changes/log-bound.js';
import { METRICS_ROUTES, offerMetrics } from './features/health/metrics-routes.js';
import { CLIENT_ROUTES } from './features/reference/client-routes.js';
import { MACHINE_ROUTES } from './features/reference/machine-routes.js';
import { GUIDE_ROUTES, ROOT_ROUTES } from './features/reference/guide-routes.js';
import { projectTypesRoutes } from './features/project-types/project-types-routes.js';
import { referenceRoutes } from './features/reference/reference-routes.js';
import { CONSOLE_ROUTES } from './features/console/console-routes.js';
import { noteRequests } from './features/series/requests/recent-requests.js';
import { BACKUP_ROUTES } from './features/backups/backup-routes.js';
import { SERVICE_ROUTES } from './features/series/service-routes.js';
import { DELIVERY_ROUTES, WEBHOOK_ROUTES } from './features/webhooks/webhook-routes.js';
import { watchUnindexedReads } from './features/collections/indexes/unindexed-reads.js';
import { OPERATORS_TENANT, tenantOf } from './http/admission/tenants.js';
import { accessLog } from './http/observe-requests.js';
import { answerRequests } from './http/answer-requests.js';
import { allowOrigins } from './http/allow-origins.js';
import { readClientAddress } from './http/requests/client-address.js';
import { rejectSurplus } from './http/bound-connections.js';
import { openKoa } from './http/koa.js';
import { measureRequests } from './http/observe-requests.js';
import { requestId } from './http/requests/request-id.js';
import type { RouteList } from './http/routes/route.js';
import { mountRoutes } from './http/routes/mount-routes.js';
import { securityHeaders } from './http/replies/security-headers.js';
import { servePublicFolder } from './http/public-folder/serve-public-folder.js';
import { traceRequests } from './http/observe-requests.js';

/**
 * Every route of the service, feature by feature, in the order in which readers meet it: what applications call, then
 * what operators do.
 */
export const ROUTE_LISTS: readonly RouteList[] = [
  DOCUMENT_ROUTES,
  BATCH_ROUTES,
  FEED_ROUTES,
  STREAM_ROUTES,
  SCHEMA_ROUTES,
  ...projectTypesRoutes(() => ROUTE_LISTS),
  USER_ROUTES,
  FILE_ROUTES,
  LOCAL_FILE_ROUTES,
  MAIL_ROUTES,
  RUN_ROUTES,
  CALL_ROUTES,
  ADMIN_ROUTES,
  ...SERVICE_ROUTES,
  BACKUP_ROUTES,
  PROJECT_ROUTES,
  COLLECTION_ROUTES,
  PROJECT_SCHEMA_ROUTES,
  PROJECT_DOCUMENT_ROUTES,
  RULES_ROUTES,
  KEY_ROUTES,
  PROJECT_USER_ROUTES,
  PROJECT_INVITE_ROUTES,
  PROJECT_SOCIAL_ROUTES,
  WEBHOOK_ROUTES,
  DELIVERY_ROUTES,
  HOOK_ROUTES,
  SCHEDULE_ROUTES,
  MAIL_OPERATOR_ROUTES,
  TEMPLATE_ROUTES,
  BUCKET_ROUTES,
  PROJECT_FILE_ROUTES,
  HEALTH_ROUTES,
  METRICS_ROUTES,
  ...referenceRoutes(() => ROUTE_LISTS),
  ...CLIENT_ROUTES,
  GUIDE_ROUTES,
  ...MACHINE_ROUTES,
  ROOT_ROUTES,
  CONSOLE_ROUTES,
];

/** Paths of operators and their scripts alone: pages of other origins get nothing there. */
const OPERATORS_PATHS = ['/api/admin', '/api/projects', '/metrics'];

/** What says how the process is, however full it is. */
const ALWAYS_ANSWERED = ['/api/health', '/metrics'];

const PROXY_ADVICE =
  'A request came with X-Forwarded-For, which is ignored: if there is a proxy in front, all clients count as one address for limits and locks. Set BSVC_TRUST_PROXY to the number of proxies.';

/** The HTTP API as a Koa application; the order of what follows is the order in which a request meets it. */
export function createApi(app: App): Koa {
  const api = openKoa(reportTo(app));
  if (app.telemetry) api.use(traceRequests(app.telemetry));
  api.use(
    answerRequests({
      prepare: [
        requestId(),
        securityHeaders(app.config.publicUrl),
        readClientAddress(app.config.trustProxy, () => app.log.warn(PROXY_ADVICE)),
      ],
      observe: [measureRequests(app.metrics), accessLog(app.log), noteRequests(app)],
      log: app.log,
      tenantOf,
      countHeld: (ctx, bytes) => {
        const { caller } = ctx.state as { caller?: Caller };
        const tenant = caller ? tenantOfCaller(caller) : { project: OPERATORS_TENANT, address: '' };
        app.replies.add(tenant, bytes);
        return () => app.replies.giveBack(tenant, bytes);
      },
    }),
  );
  api.use(allowOrigins({ except: OPERATORS_PATHS }));
  api.use(rejectSurplus({ except: ALWAYS_ANSWERED }));
  api.use(rejectWhileRestoring(app));
  app.metrics.gauge('http_reply_bytes_held', 'Bytes of large replies under way', () => [{ value: app.replies.held }]);
  // Its metrics are there before the first stream.
  streamHub(app);
  offerMetrics(app);
  offerLogSize(app);
  watchUnindexedReads(app);
  if (app.config.publicDir !== null) api.use(servePublicFolder(app.config.publicDir, app.config.publicSpa, app.log));
  api.use(mountRoutes(app, ROUTE_LISTS, limitRequests(app)));
  return api;
}

/** Health and metrics alone, for a process that serves nothing else. */
export function createMonitoringApi(app: App): Koa {
  const api = openKoa(reportTo(app));
  api.use(answerRequests({ prepare: [requestId(), securityHeaders(null)], observe: [], log: app.log }));
  offerMetrics(app);
  offerLogSize(app);
  api.use(mountRoutes(app, [HEALTH_ROUTES, METRICS_ROUTES], limitRequests(app)));
  return api;
}

function reportTo({ log }: App): (error: Error) => void {
  return (error) => log.debug({ err: error }, 'response could not be sent');
}
