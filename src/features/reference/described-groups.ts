import { describeRoutes } from '../../http/routes/route-list.js';
import type { GroupDescription } from '../../http/routes/route-description.js';
import { DOCUMENT_ROUTES } from '../documents/document-routes.js';
import { SCHEMA_ROUTES } from '../documents/schema-routes.js';
import { FEED_ROUTES } from '../feed/feed-routes.js';
import { FILE_ROUTES } from '../files/file-routes.js';
import { LOCAL_FILE_ROUTES } from '../files/local-file-routes.js';
import { HEALTH_ROUTES } from '../health/health-routes.js';
import { METRICS_ROUTES } from '../health/metrics-routes.js';
import { MAIL_OPERATOR_ROUTES, MAIL_ROUTES } from '../mail/mail-routes.js';
import { PROJECT_USER_ROUTES } from '../management/project-user-routes.js';
import { ADMIN_ROUTES } from '../operators/admin-routes.js';
import { BUCKET_ROUTES } from '../management/bucket-routes.js';
import { COLLECTION_ROUTES } from '../management/collection-routes.js';
import { KEY_ROUTES } from '../management/key-routes.js';
import { PROJECT_DOCUMENT_ROUTES } from '../management/document-routes.js';
import { PROJECT_ROUTES } from '../management/project-routes.js';
import { PROJECT_SCHEMA_ROUTES } from '../management/schema-routes.js';
import { PROJECT_SOCIAL_ROUTES } from '../management/social-routes.js';
import { TEMPLATE_ROUTES } from '../management/template-routes.js';
import { USER_ROUTES } from '../users/user-routes.js';
import { WEBHOOK_ROUTES } from '../webhooks/webhook-routes.js';
import { GUIDE_ROUTES } from './guide-routes.js';
import { DOCUMENT_FILE_ROUTES, PAGE_ROUTES } from './describe-routes.js';

/**
 * What every feature says about its routes, in the order in which readers meet it: what applications call, then what
 * operators do.
 */
export const DESCRIBED_GROUPS: readonly GroupDescription[] = [
  describeRoutes(DOCUMENT_ROUTES),
  describeRoutes(FEED_ROUTES),
  describeRoutes(SCHEMA_ROUTES),
  describeRoutes(USER_ROUTES),
  describeRoutes(FILE_ROUTES),
  describeRoutes(LOCAL_FILE_ROUTES),
  describeRoutes(MAIL_ROUTES),
  describeRoutes(ADMIN_ROUTES),
  describeRoutes(PROJECT_ROUTES),
  describeRoutes(COLLECTION_ROUTES),
  describeRoutes(PROJECT_SCHEMA_ROUTES),
  describeRoutes(PROJECT_DOCUMENT_ROUTES),
  describeRoutes(KEY_ROUTES),
  describeRoutes(PROJECT_USER_ROUTES),
  describeRoutes(PROJECT_SOCIAL_ROUTES),
  describeRoutes(WEBHOOK_ROUTES),
  describeRoutes(MAIL_OPERATOR_ROUTES),
  describeRoutes(TEMPLATE_ROUTES),
  describeRoutes(BUCKET_ROUTES),
  describeRoutes(HEALTH_ROUTES),
  describeRoutes(METRICS_ROUTES),
  DOCUMENT_FILE_ROUTES,
  PAGE_ROUTES,
  describeRoutes(GUIDE_ROUTES),
];
