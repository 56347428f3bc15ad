import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import { below, type Address } from '../../api-paths.js';
import { say, Trouble, useAction } from '../../parts/basics.js';
import { Field, Form, listIn, TextArea, Tick } from '../../parts/form.js';
import { changedFields, ownFields, readFields, type User } from './user.js';

/** What is typed into the form of a user, and the requests that it makes. */
export function EditUser({
  path,
  stored,
  onDirty,
  onSaved,
}: {
  path: Address<'/api/projects/{projectId}/users/{user}'>;
  stored: User;
  onDirty: (isDirty: boolean) => void;
  onSaved: () => void;
}) {
  const own = ownFields(stored);
  const [email, setEmail] = useState(stored.email ?? '');
  const [isVerified, setVerified] = useState(stored.emailVerified);
  const [roles, setRoles] = useState((stored.roles ?? []).join(', '));
  const [json, setJson] = useState(Object.keys(own).length === 0 ? '' : JSON.stringify(own, null, 2));
  const read = readFields(json);
  const changes = {
    ...('fields' in read && changedFields(own, read.fields)),
    ...(email.trim() !== (stored.email ?? '') && { email: email.trim() }),
    ...(isVerified !== stored.emailVerified && { emailVerified: isVerified }),
  };
  const wanted = listIn(roles);
  const hasNewRoles = wanted.join('\n') !== (stored.roles ?? []).join('\n');
  const hasChanges = Object.keys(changes).length > 0;
  const isDirty = hasChanges || hasNewRoles || 'problem' in read;
  const [busy, save, error] = useAction(async () => {
    if (hasChanges) await call('PATCH', path, { body: changes });
    if (hasNewRoles) await call('PUT', below(path, '/roles'), { body: { roles: wanted } });
    say('The user is changed');
    onDirty(false);
    onSaved();
  });
  const type =
    <Value,>(set: (value: Value) => void) =>
    (value: Value): void => {
      set(value);
      onDirty(true);
    };
  return (
    <Form onSubmit={() => void (isDirty && 'fields' in read && save())}>
      <Field label="E-mail" type="email" required autocomplete="off" value={email} onText={type(setEmail)} />
      <Tick label="The address is confirmed" isOn={isVerified} onTick={type(setVerified)} />
      <Field
        label="Roles"
        autocomplete="off"
        value={roles}
        hint="Between commas; access rules read them as user.roles."
        onText={type(setRoles)}
      />
      <TextArea label="Further fields" rows={5} value={json} onText={type(setJson)} />
      {'problem' in read && <p class="bad">{read.problem}</p>}
      <Trouble error={error} />
      <p class="row">
        <button class="primary" disabled={busy || !isDirty || 'problem' in read}>
          Save
        </button>
      </p>
    </Form>
  );
}
