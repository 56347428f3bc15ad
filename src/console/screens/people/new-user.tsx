import { useState } from 'preact/hooks';
import { call } from '../../api.js';
import type { Address } from '../../api-paths.js';
import { say, useAction } from '../../parts/basics.js';
import { ofProject, quote } from '../../parts/commands.js';
import { DrawerForm } from '../../parts/drawer-form.js';
import { Field, PasswordField, TextArea, Tick } from '../../parts/form.js';
import { readFields } from './user.js';

/** A user that the project makes: the address is known to be theirs, or they are mailed a code. */
export function NewUser({
  base,
  onClose,
  onDone,
}: {
  base: Address<'/api/projects/{projectId}/users'>;
  onClose: () => void;
  onDone: () => void;
}) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [isVerified, setVerified] = useState(false);
  const [json, setJson] = useState('');
  const read = readFields(json);
  const fields = 'fields' in read ? read.fields : {};
  const body = { ...fields, email, password, ...(isVerified && { emailVerified: true }) };
  const [busy, create, error] = useAction(async () => {
    await call('POST', base, { body });
    say(`${email} can sign in now`);
    onDone();
  });
  const words = Object.entries(fields).map(
    ([name, value]) => ` --field ${quote(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)}`,
  );
  return (
    <DrawerForm
      title="New user"
      action="Create the user"
      isDirty={email + password + json !== ''}
      mayGo={email !== '' && password !== '' && 'fields' in read}
      busy={busy}
      error={error}
      commands={{
        cli: `bsvc user create ${ofProject()} --email ${quote(email)}${isVerified ? ' --verified' : ''}${words.join('')}`,
        method: 'POST',
        path: base,
        body: { ...body, password: '…' },
      }}
      onSubmit={() => void create()}
      onClose={onClose}
    >
      <Field label="E-mail" type="email" required autocomplete="off" value={email} onText={setEmail} />
      <PasswordField label="Password" isNew value={password} onText={setPassword} />
      <Tick label="The address is known to be theirs: no mail" isOn={isVerified} onTick={setVerified} />
      <TextArea
        label="Further fields"
        rows={4}
        value={json}
        hint="A JSON object with fields of the collection users, protected ones too."
        onText={setJson}
      />
      {'problem' in read && <p class="bad">{read.problem}</p>}
    </DrawerForm>
  );
}
