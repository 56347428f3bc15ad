// Operators, their sessions, and what they are noted to have done.

export { logInOperator } from '../../src/features/operators/log-in-operator.js';
export { listOperatorSessions, setOperatorPassword } from '../../src/features/operators/operator-sessions.js';
export { backUp } from '../../src/features/store-copies/back-up.js';
export { rotateSecrets } from '../../src/features/store-copies/rotate-secrets.js';
export { startSeries, type Series } from '../../src/features/series/series.js';
export { listActs, withAuditEntry } from '../../src/features/audit/audit-log.js';
export { makeSignInLink } from '../../src/features/operators/operator-sessions.js';
export { requireOperatorNamed, removeOperator, listOperators } from '../../src/features/operators/manage-operators.js';
export { addOperator } from '../../src/features/operators/manage-operators.js';
export { findKeptRequests, storeKeptRequests } from '../../src/features/series/requests/recent-requests.js';
export { saveView } from '../../src/features/operators/admin-routes.js';
export { FIGURES, openRing, type Sample } from '../../src/features/series/rings.js';
