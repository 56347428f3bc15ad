import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import type { ApiSchemas } from '../../api-routes.js';
import { say, useAction } from '../../parts/basics.js';
import { quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Choice, Field, PasswordField, Tick } from '../../parts/form.js';
import { projects } from '../../session.js';

const ROLES = [
  ['owner', 'owner: changes everything it sees'],
  ['viewer', 'viewer: only looks'],
] as const;

/** Adds an operator, or changes role, projects and password of one. */
export function OperatorDrawer({
  base,
  stored,
  onClose,
  onSaved,
}: {
  base: Address<'/api/admin/operators'>;
  stored: ApiSchemas['OperatorAccount'] | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState(stored?.role ?? 'viewer');
  const [seesAll, setAll] = useState(stored ? stored.projects === null : true);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(stored?.projects ?? []));
  const seen = seesAll ? null : [...chosen];
  const hasOtherRights =
    role !== (stored?.role ?? 'viewer') ||
    JSON.stringify(seen && [...seen].sort()) !== JSON.stringify(stored?.projects ? [...stored.projects].sort() : null);
  const path = stored && below(base, '/{operator}', { operator: stored.id });
  const rights = { role, projects: seen };
  const [busy, save, error] = useAction(async () => {
    if (!path) {
      await call('POST', base, { body: { email, password, ...rights } });
    } else {
      if (hasOtherRights) await call('PATCH', path, { body: rights });
      if (password !== '') await call('POST', below(path, '/password'), { body: { password } });
    }
    say(stored ? 'The operator is changed' : 'The operator can sign in now');
    onSaved();
  });
  const words = projects.value
    .filter(({ id }) => seen?.includes(id))
    .map(({ name }) => ` --project ${quote(name)}`)
    .join('');
  return (
    <DrawerForm
      title={stored ? stored.email : 'Add an operator'}
      action={stored ? 'Save' : 'Add the operator'}
      isDirty={email + password !== '' || hasOtherRights}
      mayGo={
        (seesAll || chosen.size > 0) && (stored ? hasOtherRights || password !== '' : email !== '' && password !== '')
      }
      busy={busy}
      error={error}
      commands={
        path
          ? { method: 'PATCH', path, body: rights }
          : {
              cli: `bsvc operator add --email ${quote(email || 'bob@example.com')} --role ${role}${words}`,
              method: 'POST',
              path: base,
              body: { email, password: '…', ...rights },
            }
      }
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {!stored && <Field label="E-mail" type="email" required autocomplete="off" value={email} onText={setEmail} />}
      {stored ? (
        <Field
          label="New password"
          type="password"
          autocomplete="new-password"
          value={password}
          hint="Empty leaves it as it is; a new one ends every session of the operator."
          onText={setPassword}
        />
      ) : (
        <PasswordField label="Password" isNew value={password} onText={setPassword} />
      )}
      <Choice label="Role" value={role} choices={ROLES} onChoose={setRole} />
      <Tick label="All projects, future ones too" isOn={seesAll} onTick={setAll} />
      {!seesAll && <ProjectTicks chosen={chosen} onChoose={setChosen} />}
    </DrawerForm>
  );
}

function ProjectTicks({
  chosen,
  onChoose,
}: {
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
}) {
  return (
    <fieldset>
      <legend>Projects</legend>
      {projects.value.map(({ id, name }) => (
        <Tick
          key={id}
          label={name}
          isOn={chosen.has(id)}
          onTick={(isOn) => onChoose(new Set(isOn ? [...chosen, id] : [...chosen].filter((each) => each !== id)))}
        />
      ))}
    </fieldset>
  );
}
