import type { App } from '../../app.js';
import { operatorStore, WITHOUT_VIEWS, type Operator } from '../access/operator.js';

/** All operators by address. */
export function listOperators(app: Pick<App, 'db'>): Promise<Operator[]> {
  return operatorStore(app).find({}, WITHOUT_VIEWS).sort({ email: 1 }).toArray();
}

/** An operator as HTTP and command line show it; `projects` null = all. */
export function presentOperator(operator: Operator) {
  return {
    id: operator._id.toHexString(),
    email: operator.email,
    role: operator.role,
    projects: operator.projects && operator.projects.map((id) => id.toHexString()),
    createdAt: operator.createdAt.toISOString(),
  };
}
