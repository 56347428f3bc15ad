import {
  readRequestLine,
  type Answer,
  type Parameters,
  type PathOf,
  type RequestLine,
  type Route,
  type RouteDefinition,
} from '../../http/routes/route.js';
import { PROJECT_OPERATOR, projectOwner } from '../access/operator-access.js';
import { SECRET_KEY } from '../access/key-access.js';
import type { Project } from '../projects/project.js';

const KEY_PREFIX = '/api/mail';
export const OPERATOR_PREFIX = '/api/projects/:projectId/mail';

/** One thing to do with a project's mail as two routes: by the project's secret key and by an operator's token. */
export interface MailOperation {
  byKey: Route;
  byOperator: Route;
}

type Definition<Path extends string, Query extends Parameters, Body, A extends Answer | readonly Answer[]> = Omit<
  RouteDefinition<Path, { project: Project }, Query, Body, A>,
  'access'
>;

/**
 * The two routes of an operation, whose `path` is below either prefix. `action` is what the audit log calls it when an
 * operator does it; absent = it changes nothing.
 */
export function mailOperation<
  const Line extends RequestLine,
  const Query extends Parameters,
  Body,
  const A extends Answer | readonly Answer[],
>(
  line: Line,
  { action, ...definition }: Definition<PathOf<Line>, Query, Body, A> & { action?: string },
): MailOperation {
  const { method, path } = readRequestLine(line);
  const { id } = definition;
  return {
    byKey: { ...definition, method, path: KEY_PREFIX + path, access: SECRET_KEY },
    byOperator: {
      ...definition,
      method,
      id: `${id}OfProject`,
      path: OPERATOR_PREFIX + path,
      access: action === undefined ? PROJECT_OPERATOR : projectOwner(action),
    },
  };
}
