import { AppError } from '../../../src/errors.js';
import { OPERATOR_ROLES, type Operator } from '../../../src/features/access/operator.js';
import {
  addOperator,
  findOperatorByEmail,
  requireOperatorEmail,
} from '../../../src/features/operators/add-operator.js';
import { presentOperator } from '../../../src/features/operators/list-operators.js';
import { requireProject } from '../../../src/features/projects/project-store.js';
import { choice, defineCommand, flag, list, secret, option } from '../../shell/command.js';
import type { Result } from '../../view/output.js';
import { presentFound } from '../../view/present-found.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { presentSeen } from './present.js';

export default defineCommand({
  details: [
    'Operators sign in at POST /api/admin/login and use /api/projects/… with the token they get.',
    'An owner can change everything, a viewer only reads. Without --project, the operator has access to all projects and can create new ones.',
  ].join('\n'),
  examples: [
    'bsvc operator add --email ann@example.com',
    'bsvc operator add --email bob@example.com --role viewer --project shop --password-stdin < password.txt',
  ],
  audited: true,
  parameters: {
    email: option('--email <address>', 'e-mail address to sign in with'),
    role: choice('--role <role>', 'what it may do (default: owner)', OPERATOR_ROLES),
    projects: list('--project <id|name>', 'only this project (repeatable)'),
    password: secret('password', 'the password, 6 to 72 bytes'),
    ifNotExists: flag('--if-not-exists', 'do nothing if one with that address exists'),
  },
  async run(context, input) {
    const given = input.email ?? (await context.ask.text('E-mail address:', 'No address given: add --email <address>'));
    const email = requireOperatorEmail(given);
    const app = await context.app();
    const findExisting = () => (input.ifNotExists ? findOperatorByEmail(app, email) : null);
    const existing = await findExisting();
    if (existing) return presentExisting(existing, input.role);
    const projects = [];
    for (const named of input.projects) projects.push(await requireProject(app, named));
    const password = await readNewPassword(context, input.password, 'Password');
    let operator: ReturnType<typeof presentOperator>;
    try {
      operator = presentOperator(
        await addOperator(app, {
          email,
          password,
          role: input.role ?? 'owner',
          projects: projects.length > 0 ? projects : null,
        }),
      );
    } catch (error) {
      // Somebody else may have added it since.
      const taken = error instanceof AppError && error.code === 'OPERATOR_EXISTS';
      const winner = taken ? await findExisting() : null;
      if (winner) return presentExisting(winner, input.role);
      throw error;
    }
    return {
      json: { operator, created: true },
      quiet: operator.id,
      text: () =>
        [
          `Added operator ${operator.email} (${operator.role}, ${presentSeen(operator)}).`,
          `It signs in at POST /api/admin/login; for scripts: bsvc operator token ${operator.email}`,
        ].join('\n'),
    };
  },
});

function presentExisting(operator: Operator, role: Operator['role'] | undefined): Result {
  const shown = presentOperator(operator);
  const unmet = role === undefined || role === shown.role ? [] : [`role: ${shown.role} -> ${role}`];
  return {
    json: { operator: shown, created: false, unmet },
    quiet: shown.id,
    text: () => presentFound(`Operator ${shown.email}`, unmet, 'To change it, remove it and add it again.'),
  };
}
