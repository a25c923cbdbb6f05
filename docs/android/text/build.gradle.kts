import org.jetbrains.kotlin.gradle.dsl.JvmTarget

plugins { kotlin("jvm") }

java {
    sourceCompatibility = JavaVersion.VERSION_11
    targetCompatibility = JavaVersion.VERSION_11
}

kotlin { compilerOptions { jvmTarget = JvmTarget.JVM_11 } }

dependencies {
    // Android has this package itself.
    compileOnly("org.json:json:20260814")
    testImplementation("org.json:json:20260814")
    testImplementation(kotlin("test-junit"))
}
