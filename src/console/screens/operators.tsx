import { prepare } from '../api.js';
import { below, pathTo } from '../api-paths.js';
import type { ApiSchemas } from '../api-routes.js';
import { moment } from '../format.js';
import { useLoad } from '../load.js';
import { CrudScreen, opens } from '../parts/crud-screen.js';
import { DrawerForm } from '../parts/drawer.js';
import { Choice, Field, PasswordField, Tick, useForm, type Bound } from '../parts/form.js';
import { mayChange, me, projects } from '../session.js';

type OperatorAccount = ApiSchemas['OperatorAccount'];

const BASE = pathTo('/api/admin/operators');
const isOwn = ({ email }: OperatorAccount): boolean => email === me.value?.email;
const nameOf = (id: string): string => projects.value.find((project) => project.id === id)?.name ?? id;

/** Those who look after the service, and which projects each sees. */
export function Operators() {
  const list = useLoad(BASE);
  return (
    <CrudScreen
      title="Operators"
      count={list.data?.items.length}
      list={list}
      add="Add an operator"
      keyOf={({ id }) => id}
      empty="No operators."
      columns={[
        {
          name: 'Email',
          show: (operator) =>
            mayChange.value && !isOwn(operator)
              ? opens(operator.id, operator.email)
              : `${operator.email}${isOwn(operator) ? ' (you)' : ''}`,
        },
        { name: 'Role', show: ({ role }) => <span class={role === 'owner' ? 'tag plain' : 'tag'}>{role}</span> },
        { name: 'Projects', show: (operator) => operator.projects?.map(nameOf).join(', ') ?? 'all' },
        { name: 'Added', show: ({ createdAt }) => moment(createdAt) },
      ]}
      form={(stored, close) => <OperatorDrawer key={stored?.id ?? ''} stored={stored} onClose={close} />}
      remove={(operator) =>
        isOwn(operator)
          ? null
          : {
              title: 'Remove the operator',
              label: `Remove ${operator.email}`,
              text: 'All sessions and tokens end immediately.',
              name: operator.email,
              asksPassword: true,
              request: prepare('DELETE', below(BASE, '/{operator}', { operator: operator.id })),
              done: 'The operator is removed',
            }
      }
    />
  );
}

const ROLES = [
  ['owner', 'owner: changes everything it sees'],
  ['viewer', 'viewer: only looks'],
] as const;

/** Adds an operator, or changes role, projects and password of one. */
function OperatorDrawer({ stored, onClose }: { stored: OperatorAccount | null; onClose: () => void }) {
  const form = useForm({
    email: '',
    password: '',
    role: stored?.role ?? 'viewer',
    seesAll: stored ? stored.projects === null : true,
    chosen: [...(stored?.projects ?? [])].sort(),
  });
  const { email, password, role, seesAll, chosen } = form.values;
  const rights = { role, projects: seesAll ? null : chosen };
  const { password: _typed, ...otherRights } = form.changed;
  const path = stored && below(BASE, '/{operator}', { operator: stored.id });
  const requests = path
    ? [
        ...(Object.keys(otherRights).length > 0 || password === '' ? [prepare('PATCH', path, { body: rights })] : []),
        ...(password === '' ? [] : [prepare('POST', below(path, '/password'), { body: { password } })]),
      ]
    : [prepare('POST', BASE, { body: { email, password, ...rights } })];
  return (
    <DrawerForm<unknown>
      title={stored ? stored.email : 'Add an operator'}
      action={stored ? 'Save' : 'Add the operator'}
      requests={requests}
      done={stored ? 'The operator is changed' : 'The operator can sign in now'}
      isDirty={form.isDirty}
      mayGo={form.isDirty && (seesAll || chosen.length > 0) && (stored !== null || (email !== '' && password !== ''))}
      onClose={onClose}
    >
      {!stored && <Field label="Email" type="email" required {...form.at('email')} />}
      {stored ? (
        <Field
          label="New password"
          type="password"
          autocomplete="new-password"
          hint="Leave empty to keep it. A new password ends all sessions of the operator."
          {...form.at('password')}
        />
      ) : (
        <PasswordField label="Password" isNew {...form.at('password')} />
      )}
      <Choice label="Role" choices={ROLES} {...form.at('role')} />
      <Tick label="All projects, including future ones" {...form.at('seesAll')} />
      {!seesAll && <ProjectTicks {...form.at('chosen')} />}
    </DrawerForm>
  );
}

function ProjectTicks({ value, onChange }: Bound<string[]>) {
  return (
    <fieldset>
      <legend>Projects</legend>
      {projects.value.map(({ id, name }) => (
        <Tick
          key={id}
          label={name}
          value={value.includes(id)}
          onChange={(isOn) => onChange([...value.filter((each) => each !== id), ...(isOn ? [id] : [])].sort())}
        />
      ))}
    </fieldset>
  );
}
