// The service itself: what is mounted, with which settings, and how it is opened and served.

export { PACKAGE_ROOT, readPackageFile } from '../../src/package.js';
export { PROJECT_ROUTES } from '../../src/features/management/project-routes.js';
export { PROVIDER_OPERATIONS } from '../../src/features/mail/provider-routes.js';
export { OPERATOR_PREFIX } from '../../src/features/mail/provider-routes.js';
export { GUIDES, GUIDES_PREFIX } from '../../src/features/reference/guides.js';
export type { GuideSection } from '../../src/features/reference/reference-files.js';
export { type App, openApp } from '../../src/app.js';
export { createApi, createMonitoringApi, ROUTE_LISTS } from '../../src/api.js';
export { startServer, type RunningServer } from '../../src/http/server.js';
export { type Route, type RouteList, type RateClass, JSON_TYPE } from '../../src/http/routes/route.js';
export { loadConfig, type Constants } from '../../src/config/config.js';
export { SETTINGS } from '../../src/config/settings.js';
export { openServiceClock, systemClock, type Clock } from '../../src/platform/time/clock.js';
export { openLogger } from '../../src/platform/observe/logger.js';
export type { JsonSchema, Schema } from '../../src/platform/schema/schema.js';
export { migrate, MIGRATIONS, findMigrationStatus, type Migration } from '../../src/migrations/migrate.js';
export { SYSTEM_INDEXES } from '../../src/migrations/system-indexes.js';
export { AppError, conflict, forbidden, unavailable } from '../../src/errors.js';
export {
  buildApiDocument,
  type ApiDocument,
  type ApiParameter,
  type Operation,
  templateOf,
} from '../../src/features/reference/api-document.js';
export { pageOfError } from '../../src/http/replies/error-page.js';
