export default function Page() {
  return <img src="/ec/pictures/cat.svg" alt="A cat" />;
}
