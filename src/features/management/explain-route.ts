import { invalid } from '../../errors.js';
import { clientSignal } from '../../http/requests/client-signal.js';
import { ok, route } from '../../http/routes/route.js';
import { ANYTHING, arrayOf, object, text, TEXT, WHOLE } from '../../platform/schema/schema.js';
import { AGGREGATING, LISTING } from '../documents/read-routes.js';
import { explainPipeline } from '../documents/read/aggregate-documents.js';
import { explainList } from '../documents/read/list-documents.js';
import { READS } from './played-user.js';

const MAX_QUERY = 8192;

const EXPLAINED = object(
  {
    indexes: { ...arrayOf(TEXT), description: 'None: every document is looked at.' },
    examined: { ...WHOLE, description: 'Documents that were looked at.' },
    returned: { ...WHOLE, description: 'Documents that were found, or handed to the later stages of a pipeline.' },
    plan: { ...ANYTHING, description: 'In the database’s own form.' },
  },
  'ExplainedRead',
);

/** How a list or a pipeline is read, for the operators' query screen. */
export const explainReadRoute = route('POST /api/projects/:projectId/collections/:collection/documents/explain', {
  id: 'explainRead',
  summary: 'Show by which index a list or a pipeline is read',
  description: 'Runs it. Give either the query string of a list or a pipeline.',
  bodySize: 'many',
  access: READS,
  body: object({ 'query?': text({ maxLength: MAX_QUERY }), 'pipeline?': ANYTHING }),
  example: { query: 'status=live&sort=-views' },
  answers: ok(EXPLAINED, 'Read explained'),
  refuses: { ...LISTING.refuses, 400: [...new Set([...LISTING.refuses[400], ...AGGREGATING.refuses[400]])] },
  async handle({ app, ctx, caller, collection: { name }, body: { query, pipeline } }) {
    if ((query === undefined) === (pipeline === undefined)) {
      throw invalid('INVALID_BODY', 'Give either a query or a pipeline');
    }
    const signal = clientSignal(ctx);
    return pipeline === undefined
      ? explainList(app, caller, name, query!, signal)
      : explainPipeline(app, caller, name, pipeline, { includeDeleted: false, signal });
  },
});
