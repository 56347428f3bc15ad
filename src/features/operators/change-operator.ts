import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { forgetOperators, operatorStore, type Operator, type OperatorRole } from '../access/operator.js';
import type { Project } from '../projects/project.js';

export interface OperatorChange {
  role?: OperatorRole | undefined;
  /** The projects it sees; null = all. */
  projects?: readonly Pick<Project, '_id'>[] | null | undefined;
}

/**
 * Changes what an operator may do, by one write: its sessions go on with it, in other processes within a second. 404
 * OPERATOR_NOT_FOUND when it is gone.
 */
export async function changeOperator(
  app: App,
  { _id }: Pick<Operator, '_id'>,
  { role, projects }: OperatorChange,
): Promise<Operator> {
  const seen = projects === undefined ? {} : { projects: projects && projects.map((project) => project._id) };
  const changed = await operatorStore(app).findOneAndUpdate(
    { _id },
    { $set: { ...(role && { role }), ...seen } },
    { returnDocument: 'after' },
  );
  if (!changed) throw missing('OPERATOR_NOT_FOUND', 'The operator is gone');
  forgetOperators(app);
  return changed;
}
